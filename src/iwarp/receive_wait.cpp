// A Send without a posted receive. If TCP has not acknowledged it, it is dropped and arrives again
// . If TCP has acknowledged it, it cannot be resent: it ends the stream, or, if the
// consumer allows it, it stays in place with all later data, and TCP's window closes.
#include <algorithm>

#include "iwarp/rx_commit.h"

namespace urnic::iwarp {

void RxCommit::want_receive(Connection& c) {
  verbs::SharedReceiveQueue* shared = c.stream->rq.shared();
  if (shared != nullptr && !c.qp->starved) shared->starved.push_back(c.id);
  // E-17: set before the queue is checked again.
  c.qp->starved = true;
  if (shared != nullptr) shared->wanted = true;
}

// Returns false if a receive was posted at this very moment.
bool RxCommit::wait_for_receive(Connection& c) {
  want_receive(c);
  if (c.stream->rq.has(c.starved_msn)) return false;
  c.receive_wait = ReceiveWait::Waiting;
  return true;
}

void RxCommit::begin_wait(Connection& c, Instant now) {
  ++c.counters.receive_waits;
  c.stage_deadline = now + c.stream->config.receive_wait;
  if (c.peer_fin == PeerFin::AfterData || (c.link != nullptr && c.link->ending))
    shorten_receive_wait(c, now);
  s_.timers.arm(c);
}

void RxCommit::shorten_receive_wait(Connection& c, Instant now) {
  c.stage_deadline = std::min(c.stage_deadline, now + s_.options.linger_timeout);
  s_.timers.arm(c);
}

void RxCommit::receive_posted(verbs::QueuePair& qp, Instant now) {
  if (!qp.starved.exchange(false)) return;
  Connection* c = s_.connections.find(qp.connection);
  if (c == nullptr) return;
  if (c->awaits_receive()) {
    c->receive_wait = ReceiveWait::None;
    c->stage_deadline = Instant::never();
    s_.draining.push(*c);
    return;
  }
  if (!s_.options.rq_nudge || c->link != nullptr) return;
  for (int i = 0; i < 3; ++i) transmitter_.emit_ack(*c, now);
  s_.wire.tx().flush();
}

}  // namespace urnic::iwarp
