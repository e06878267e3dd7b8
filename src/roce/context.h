// The state that the RoCE side keeps for one queue pair. Owned by the queue pair, and touched only
// under the ownership of its engine.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/context.h"
#include "ib/greeting.h"
#include "ib/keepalive.h"
#include "ib/marks.h"
#include "roce/halves.h"
#include "roce/path.h"
#include "verbs/queue_pair.h"

namespace urnic::roce {

struct Context final : verbs::TransportHalf {
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  explicit Context(verbs::QueuePair* of) : qp(of) {}
  // No request of the peer waits for a receive any more.
  void end_waiting() {
    parked_until = Instant::never();
    qp->starved = false;
  }

  verbs::QueuePair* qp;
  ib::QpAttributes attributes;
  // From Rtr and from Rts on, respectively.
  ResponderHalf responder;
  RequesterHalf requester;

  ib::Greeting greeting;         // from and to the peer (S-7)
  ib::Keepalive alive;           // probes of the peer while it has a connection
  ib::Marks marks;               // marks on packets of the peer (S-10)
  Path path;                     // to the peer; UD has none
  std::uint64_t unreliable = 0;  // packets handed out, UC and UD

  // Until when a request of the peer waits for a receive (S-9).
  Instant parked_until = Instant::never();

  bool tell_drained = false;          // report when nothing is outstanding in Sqd (IB-112)
  bool established_reported = false;  // a request that arrived in Rtr has been reported (IB-120)
  // Report the first request in Rts, too, like one in Rtr.
  bool tells_first_request = false;

  // Links of the list of queue pairs that want to send, and the place in the heap of deadlines.
  Context *before = nullptr, *behind = nullptr;
  bool queued = false;
  std::uint32_t place = kNowhere;
  Instant due = Instant::never();
};

// Makes the halves of RC when they are first needed. All that it points to must outlive them.
struct HalfMaker {
  const ib::SendRules* rules;
  verbs::MemoryTable* memory;
  ib::HeldPool* pool;

  // Throws std::bad_alloc; the half is then still chosen but not made.
  void requester(Context& c) const { c.requester.make(c.attributes, *rules, c.qp, memory, pool); }
  // Null if out of memory.
  ib::Responder* responder(Context& c) const {
    return c.responder.make(c.attributes, c.qp, memory, pool);
  }
};

inline Context& context_of(const verbs::QueuePair& qp) {
  return static_cast<Context&>(*qp.transport);
}

}  // namespace urnic::roce
