#include "roce/receive_wait.h"

namespace urnic::roce {

void complete_in_order(verbs::Completions* completions, Context& c, ib::Received r,
                       verbs::Completion* done) {
  for (;;) {
    if (r.completed) completions->post(*c.qp, *done);
    if (!r.more) break;
    r = c.responder.rc()->take_held(done);
  }
}

// After starved is set it looks once more, since a post before that has not reported itself.
void look_for_receive(verbs::Completions* completions, Context& c, Instant now) {
  ib::Responder& half = *c.responder.rc();
  bool waited = !c.parked_until.is_never();
  for (; half.parked(); waited = true) {
    if (c.parked_until.is_never()) c.parked_until = now + c.attributes.loss.rnr_park_time;
    c.qp->starved = true;
    if (!half.receive_posted()) return;
    c.parked_until = Instant::never();  // the next request has a wait of its own
    verbs::Completion done;
    complete_in_order(completions, c, {ib::Verdict::Accept, false, true}, &done);
  }
  if (waited) c.end_waiting();
}

void stop_waiting(Context& c) {
  c.responder.rc()->stop_waiting();
  c.end_waiting();
}

}  // namespace urnic::roce
