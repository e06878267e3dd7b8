// What the RoCE side keeps of one queue pair. Owned by the queue pair, touched only under the
// ownership of its engine.
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
  // Nothing of the peer's waits for a receive (any more).
  void end_waiting() {
    parked_until = Instant::never();
    qp->starved = false;
  }

  verbs::QueuePair* qp;
  ib::QpAttributes attributes;
  // From Rtr and Rts on.
  ResponderHalf responder;
  RequesterHalf requester;

  ib::Greeting greeting;         // of the peer (S-7)
  ib::Keepalive alive;           // of the peer, as long as it has a connection
  ib::Marks marks;               // on what it sends (S-10)
  Path way;                      // to the peer; UD has none
  std::uint64_t unreliable = 0;  // packets handed out, of UC and UD

  // A request of the peer waits for a receive, until then (S-9).
  Instant parked_until = Instant::never();

  bool tell_drained = false;      // once nothing is outstanding in Sqd (IB-112)
  bool told_established = false;  // that a request came in Rtr (IB-120)
  // In Rts as well: its consumer is to be told of the first request as one in Rtr would be.
  bool tells_first_request = false;

  // In the list of those that want to send, and in the heap of deadlines.
  Context *before = nullptr, *behind = nullptr;
  bool queued = false;
  std::uint32_t place = kNowhere;
  Instant due = Instant::never();
};

// Makes the halves of RC, each when it is first needed. What is pointed to outlives them.
struct HalfMaker {
  const ib::SendRules* rules;
  verbs::MemoryTable* memory;
  ib::HeldPool* pool;

  // Throws std::bad_alloc, and then there is none; it has been chosen.
  void requester(Context& c) const { c.requester.make(c.attributes, *rules, c.qp, memory, pool); }
  // Null: there is no memory.
  ib::Responder* responder(Context& c) const {
    return c.responder.make(c.attributes, c.qp, memory, pool);
  }
};

inline Context& context_of(const verbs::QueuePair& qp) {
  return static_cast<Context&>(*qp.transport);
}

}  // namespace urnic::roce
