#include "ib/park.h"

#include "ib/answers.h"

namespace urnic::ib {
namespace {

// True if a receive is missing; a receive in use may instead wait for READs to be answered.
bool may_park(const ResponderState& s) {
  return s.recovery.type() == ConnectionType::Fast && s.qp->loss.rnr_park != 0 &&
         s.rq->shared() == nullptr && !s.rq->has(s.rq->head());
}

}  // namespace

bool park(ResponderState& s, const ParsedPacket& request) {
  if (s.parked) return true;
  if (!may_park(s)) return false;
  if (request.payload.size() > s.qp->pmtu() || s.held.size() >= s.qp->loss.rnr_park) return false;
  if (s.held.keep(request) == HeldPackets::Kept::NoRoom) return false;
  ++s.counters.parked;
  s.parked = s.watch = true;
  // The same state as after a refusal: no NAK for the requests after it; a pending NAK is obsolete.
  s.silent = true;
  s.refused = Verdict::NotReady;
  s.nak = {};
  return true;
}

void stop_waiting(ResponderState& s) {
  if (!s.parked) return;
  s.parked = s.gap_unreported = false;
  s.held.remove_first();
  refuse(s, Verdict::NotReady, s.expected);
  s.nak.timer = s.qp->min_rnr_timer;
}

void report_deferred_gap(ResponderState& s) {
  if (!s.gap_unreported || s.parked) return;
  s.gap_unreported = false;
  if (!s.held.empty() && !s.silent && !s.reports_held())
    refuse(s, Verdict::OutOfSequence, s.held.end() - 1);
}

}  // namespace urnic::ib
