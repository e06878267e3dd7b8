// One end of RD: its EE contexts and queue pairs by number. It schedules the queue pairs and
// handles the failure of a message, a queue pair or an EE context.
//
// A function of (state, input, now): it sends nothing and reads no clock. It allocates memory only
// when an object is created. It has one owner; every call must be made under that ownership.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ip_address.h"
#include "base/time.h"
#include "ib/check.h"
#include "sim/rd/ee_context.h"
#include "sim/rd/rd_queue_pair.h"
#include "sim/rd/rd_requester.h"
#include "sim/rd/rd_responder.h"

namespace urnic::sim {

struct EeContext {
  EeContext(const EeAttributes& of, verbs::MemoryTable* memory)
      : attributes(of), requester(attributes), responder(attributes, memory) {}

  EeAttributes attributes;
  verbs::QpState state = verbs::QpState::Reset;
  RdRequester requester;
  RdResponder responder;
};

// Notifications to the owner, called from within the call that causes them; may be null.
struct RdHooks {
  void* context = nullptr;
  void (*completion)(void*, const RdQueuePair&, const verbs::Completion&) = nullptr;
  // State changes not requested by the consumer: a queue pair enters Sqe or Error, an EE context
  // enters Error.
  void (*queue_pair_moved)(void*, const RdQueuePair&) = nullptr;
  void (*ee_context_moved)(void*, const EeContext&) = nullptr;
};

class RdHost {
 public:
  // bound: EE contexts of an end of RD, and its queue pairs; limit: 16 and 64; beyond: no more are
  // created (null); test: RdHost.CreatesObjectsOnlyUpToTheLimit
  static constexpr std::size_t kMaxContexts = 16, kMaxQueuePairs = 64;

  explicit RdHost(verbs::MemoryTable* memory, const RdHooks& hooks = {});

  // Created in Reset. Null if the number is in use or the maximum is reached. The queues must
  // outlive the object. The send queue must have been created with sizeof(RdTo) bytes for the
  // transport.
  EeContext* make_context(const EeAttributes& attributes);
  RdQueuePair* make_queue_pair(const ib::QpAttributes& attributes, std::uint32_t rdd,
                               verbs::SendQueue* sq, verbs::ReceiveQueue* rq);
  EeContext* context(std::uint32_t number);
  RdQueuePair* queue_pair(std::uint32_t number);

  // A state change requested by the consumer. Also performs its effects (QpEffect), except those
  // that Reset discards.
  verbs::QpMove modify(RdQueuePair& qp, verbs::QpState to, std::uint32_t mask);
  verbs::QpMove modify(EeContext& ee, verbs::QpState to);

  // Handles a packet, as returned by open_packet(), from the host `source`. A packet that fails the
  // header checks is only counted, including one with a bad P_Key (o9-74).
  void take(const ib::ParsedPacket& packet, const IpAddress& source, Instant now);
  // Call these until they return false. *ee is the EE context of the packet, for the path. Send
  // responses first.
  bool next_response(ib::ResponsePacket* out, const EeContext** ee);
  bool next_request(Instant now, ib::RequestPacket* out, const EeContext** ee);

  Instant due() const;
  void on_time(Instant now);
  // Completes requests that were posted to queues in a flushing state.
  void flush_posted();

  const ib::DropCounters& drops() const { return drops_; }

 private:
  Outcome<ib::Half, ib::Drop> check(const ib::PacketHeader& h, const IpAddress& source,
                                    const EeContext* ee);
  void take_request(EeContext& ee, const ib::ParsedPacket& packet);
  void settle(EeContext& ee);
  bool begin_message(EeContext& ee, Instant now);
  void judge_heads();
  void stop_sends(RdQueuePair& qp);
  void stop_queue_pair(RdQueuePair& qp);
  void stop_context(EeContext& ee);
  void give_up_work(RdQueuePair& qp);
  void flush_sends(RdQueuePair& qp);
  void flush(RdQueuePair& qp);
  void report(const RdQueuePair& qp, const verbs::Completion& c) const;
  RdQueuePair* owner_of(const RdSender* sender);

  verbs::MemoryTable* memory_;
  RdHooks hooks_;
  std::vector<std::unique_ptr<EeContext>> contexts_;
  std::vector<std::unique_ptr<RdQueuePair>> queue_pairs_;
  std::size_t turn_ = 0;  // the queue pair to try first
  ib::DropCounters drops_;
};

}  // namespace urnic::sim
