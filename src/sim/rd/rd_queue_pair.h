// A queue pair of RD. Each request in its send queue names an EE context. Its receive queue takes
// messages that arrive over any EE context of its domain.
//
// It has the same owner as its EE contexts; every call, also posting, must be made under that
// ownership.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/context.h"
#include "ib/handed_out.h"
#include "verbs/qp_state.h"
#include "verbs/receive_queue.h"
#include "verbs/send_queue.h"

namespace urnic::sim {

// The destination of a request.
struct RdTo {
  std::uint32_t ee = 0;    // own number of the EE context, i.e. not the peer's
  std::uint32_t qp = 0;    // the peer's queue pair, 24 bits
  std::uint32_t qkey = 0;  // if the top bit is set, the sending queue pair's Q_Key is used
};

// The send queue. At most one of its messages is in progress at a time (IB-173).
class RdSender : public ib::HandedOut {
 public:
  // The queue must have been created with sizeof(RdTo) bytes for the transport.
  RdSender(const ib::QpAttributes& attributes, verbs::SendQueue* sq, verbs::MemoryTable* memory)
      : ib::HandedOut(attributes, sq, memory) {}

  verbs::Post post(const verbs::SendWr& wr, const RdTo& to);

  // Returns true if a request is ready to begin. Passes local operations. A request that RD cannot
  // express fails here.
  bool find_message();
  // The destination and index of that request.
  const RdTo& to() const { return wqes_.queue().part<RdTo>(next_.wqe); }
  std::uint32_t index() const { return next_.wqe; }
  const ib::SendWqes& wqes() const { return wqes_; }
  const ib::QpAttributes& attributes() const { return *qp_; }

  // Starts the request over a path with this MTU in bytes.
  void begin(std::uint32_t pmtu);
  // Ends the request: success; deferred until `until`; or failure, which stops the queue.
  void done();
  void put_back(Instant until);
  void fail(verbs::Status status);
  // Forgets all posted requests.
  void forget();
  // After a message was given up, blocks the queue until the peer has confirmed the RESYNC. Until
  // then no message may follow over any EE context, because late packets of the old message could
  // arrive after it.
  void hold() { held_ = true; }
  void release() { held_ = false; }
  bool under_way() const { return under_way_; }
  bool drained() const { return !under_way_; }
  // True if the request was deferred and its time has not passed.
  bool waits() const { return waits_; }
  Instant not_before() const { return not_before_; }
  void on_time(Instant now) { waits_ = waits_ && not_before_ > now; }
  // How often the request was deferred.
  std::uint32_t put_backs() const { return put_backs_; }

 private:
  bool can_express(std::uint32_t index) const;

  bool under_way_ = false, waits_ = false, held_ = false;
  Instant not_before_ = Instant::from_ns(0);
  std::uint32_t put_backs_ = 0;
};

struct RdQueuePair {
  // `of` provides: service Rd, number, protection domain, Q_Key, rights, responder depth, RNR
  // timer.
  RdQueuePair(const ib::QpAttributes& of, std::uint32_t domain, verbs::SendQueue* sq,
              verbs::ReceiveQueue* receives, verbs::MemoryTable* memory)
      : attributes(of), rdd(domain), rq(receives), sender(attributes, sq, memory) {}

  ib::QpAttributes attributes;
  std::uint32_t rdd;  // reliable datagram domain
  verbs::QpState state = verbs::QpState::Reset;
  verbs::ReceiveQueue* rq;
  // The responder whose message uses the oldest receive, or null. A message that arrives over
  // another EE context meanwhile finds no receive (rd_responder.h).
  const class RdResponder* receives_from = nullptr;
  RdSender sender;
};

// True if a request that arrived over an EE context of domain `rdd` may use this queue pair. If
// not, the answer is NAK Invalid RD Request: the queue pair does not exist, is not RD, has another
// domain or does not receive, or the Q_Key is wrong (IB-171).
bool takes_rd(const RdQueuePair* to, std::uint32_t rdd, std::uint32_t qkey);

}  // namespace urnic::sim
