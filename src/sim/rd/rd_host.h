// One end of RD: its EE contexts and queue pairs by number, which queue pair goes next, and what
// follows when a message, a queue pair or an EE context fails.
//
// A function of (state, input, now): it sends nothing and reads no clock. Takes its memory when
// something is made. One owner, every call under its ownership.
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

// What the owner is told, from within the call that brings it about; may be null.
struct RdHooks {
  void* context = nullptr;
  void (*completion)(void*, const RdQueuePair&, const verbs::Completion&) = nullptr;
  // Moved by itself: a queue pair to Sqe or Error, an EE context to Error.
  void (*queue_pair_moved)(void*, const RdQueuePair&) = nullptr;
  void (*ee_context_moved)(void*, const EeContext&) = nullptr;
};

class RdHost {
 public:
  // bound: EE contexts of an end of RD, and its queue pairs; limit: 16 and 64; beyond: no more are
  // created (null); test: RdHost.MakesSoManyAndNoMore
  static constexpr std::size_t kMaxContexts = 16, kMaxQueuePairs = 64;

  explicit RdHost(verbs::MemoryTable* memory, const RdHooks& hooks = {});

  // In Reset. Null when the number is taken or there are as many as may be. The queues outlive it;
  // the send queue was made with sizeof(RdTo) bytes for the transport.
  EeContext* make_context(const EeAttributes& attributes);
  RdQueuePair* make_queue_pair(const ib::QpAttributes& attributes, std::uint32_t rdd,
                               verbs::SendQueue* sq, verbs::ReceiveQueue* rq);
  EeContext* context(std::uint32_t number);
  RdQueuePair* queue_pair(std::uint32_t number);

  // The consumer moves one. What must follow, follows (QpEffect), but for what Reset forgets.
  verbs::QpMove modify(RdQueuePair& qp, verbs::QpState to, std::uint32_t mask);
  verbs::QpMove modify(EeContext& ee, verbs::QpState to);

  // A packet as open_packet() gives it, from a host at `source`. What fails the checks of headers
  // is counted and nothing else, a bad P_Key among that (o9-74).
  void take(const ib::ParsedPacket& packet, const IpAddress& source, Instant now);
  // The next packets to leave, until they say no; `ee`: whose, for the way. Responses go first.
  bool next_response(ib::ResponsePacket* out, const EeContext** ee);
  bool next_request(Instant now, ib::RequestPacket* out, const EeContext** ee);

  Instant due() const;
  void on_time(Instant now);
  // Completes what was posted to queues that flush.
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
  std::size_t turn_ = 0;  // the queue pair that is asked first
  ib::DropCounters drops_;
};

}  // namespace urnic::sim
