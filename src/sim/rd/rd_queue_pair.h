// A queue pair of RD: its send queue names an EE context with each request, its receive queue takes
// what comes over any EE context of its domain.
//
// Owned by whoever owns its EE contexts; every call under that ownership, posting as well.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/context.h"
#include "ib/handed_out.h"
#include "verbs/qp_state.h"
#include "verbs/receive_queue.h"
#include "verbs/send_queue.h"

namespace urnic::sim {

// Where a request goes.
struct RdTo {
  std::uint32_t ee = 0;    // own number of the EE context
  std::uint32_t qp = 0;    // the peer's queue pair, 24 bits
  std::uint32_t qkey = 0;  // with the top bit set: that of the queue pair it leaves from
};

// The send queue. One message of it is under way at a time (IB-173).
class RdSender : public ib::HandedOut {
 public:
  // The queue was made with sizeof(RdTo) bytes for the transport.
  RdSender(const ib::QpAttributes& attributes, verbs::SendQueue* sq, verbs::MemoryTable* memory)
      : ib::HandedOut(attributes, sq, memory) {}

  verbs::Post post(const verbs::SendWr& wr, const RdTo& to);

  // Is there a request whose turn it is? Passes local operations. May fail: a request that RD has
  // no words for.
  bool find_message();
  // Of that request.
  const RdTo& to() const { return wqes_.queue().part<RdTo>(next_.wqe); }
  std::uint32_t index() const { return next_.wqe; }
  const ib::SendWqes& wqes() const { return wqes_; }
  const ib::QpAttributes& attributes() const { return *qp_; }

  // It is under way, over a path of so many bytes.
  void begin(std::uint32_t pmtu);
  // It is over: done, not to come again before `until`, or failed, and the queue with it.
  void done();
  void put_back(Instant until);
  void fail(verbs::Status status);
  // Everything posted is forgotten.
  void forget();
  // Until the peer has heard that the last message was given up nothing follows it, over no EE
  // context: what is late of it would come behind that.
  void hold() { held_ = true; }
  void release() { held_ = false; }
  bool under_way() const { return under_way_; }
  bool drained() const { return !under_way_; }
  // Put back, the time has not passed; then not before.
  bool waits() const { return waits_; }
  Instant not_before() const { return not_before_; }
  void on_time(Instant now) { waits_ = waits_ && not_before_ > now; }
  // How often it was put back.
  std::uint32_t put_backs() const { return put_backs_; }

 private:
  bool can_express(std::uint32_t index) const;

  bool under_way_ = false, waits_ = false, held_ = false;
  Instant not_before_ = Instant::from_ns(0);
  std::uint32_t put_backs_ = 0;
};

struct RdQueuePair {
  // `of`: service Rd, number, domain of memory, Q_Key, rights, responder depth, RNR timer.
  RdQueuePair(const ib::QpAttributes& of, std::uint32_t domain, verbs::SendQueue* sq,
              verbs::ReceiveQueue* receives, verbs::MemoryTable* memory)
      : attributes(of), rdd(domain), rq(receives), sender(attributes, sq, memory) {}

  ib::QpAttributes attributes;
  std::uint32_t rdd;  // reliable datagram domain
  verbs::QpState state = verbs::QpState::Reset;
  verbs::ReceiveQueue* rq;
  // The responder whose message has the oldest receive in use, or null: a message that comes over
  // another EE context meanwhile finds none (rd_responder.h).
  const class RdResponder* receives_from = nullptr;
  RdSender sender;
};

// May a request that came over an EE context of domain `rdd` be for it? Else the answer is NAK
// Invalid RD Request: no such queue pair, none of RD, of another domain, one that does not receive,
// or the wrong Q_Key (IB-171).
bool takes_rd(const RdQueuePair* to, std::uint32_t rdd, std::uint32_t qkey);

}  // namespace urnic::sim
