#include "ib/behind_gap.h"

#include "ib/answers.h"
#include "ib/park.h"
#include "ib/place_early.h"

namespace urnic::ib {
namespace {

// A packet is missing. Sends one NAK; packets that follow only extend how far the gap reaches.
void note_gap(ResponderState& s, Psn psn) {
  ++s.counters.out_of_sequence;
  if (s.reports_held()) return;  // a SACK reports more
  if (!s.silent) {
    refuse(s, Verdict::OutOfSequence, psn);
  } else if (s.nak.why == Verdict::OutOfSequence && s.nak.refused.before(psn)) {
    s.nak.refused = psn;
  }
}

void downgrade(ResponderState& s, SlowReason why, Psn psn) {
  stop_waiting(s);  // nothing is kept any more, so the peer must be sent the NAK
  ++s.counters.downgrades;
  if (why == SlowReason::StoreFull) ++s.counters.store_full;
  if (s.reports_held() && !s.silent) refuse(s, Verdict::OutOfSequence, psn);
  s.recovery.downgrade(why, s.counters.requests);
  s.held.clear();
  s.sack_due = false;
  s.watch = true;
}

// True if there is a gap before `psn` that was not seen before. A packet that was refused for lack
// of a receive does not count as a gap.
bool is_new_gap(const ResponderState& s, Psn psn) {
  if (!s.held.empty()) return s.held.end().before(psn);
  const bool was_refused = s.silent && s.refused == Verdict::NotReady;
  return !was_refused || psn != s.expected + 1;
}

// A packet longer than allowed is not kept: the peer repeats it, and is sent the NAK then.
void keep(ResponderState& s, const ParsedPacket& p) {
  const Psn psn = p.header.bth.psn;
  if (p.payload.size() > s.qp->pmtu()) return;
  s.watch = true;
  if (waits_too_many(s)) stop_waiting(s);
  if (is_new_gap(s, psn)) {
    s.gap_unreported = s.parked;
    if (!s.recovery.gap(psn)) return downgrade(s, SlowReason::RecoveryExhausted, psn);
    ++s.counters.recovery_attempts;
  }
  s.sack_due = s.reports_held();
  switch (keep_early(s, p)) {
    case HeldPackets::Kept::Yes:
      ++s.counters.held;
      return;
    case HeldPackets::Kept::Already:
      return;
    case HeldPackets::Kept::NoRoom:
      return downgrade(s, SlowReason::StoreFull, psn);
  }
}

}  // namespace

void take_behind_gap(ResponderState& s, const ParsedPacket& request) {
  note_gap(s, request.header.bth.psn);
  if (s.recovery.type() == ConnectionType::Slow) {
    s.recovery.broken();
  } else {
    keep(s, request);
  }
}

void look_at_recovery(ResponderState& s, Verdict last) {
  if (is_fatal(s.failure)) s.held.clear();
  if (last == Verdict::Accept && s.recovery.taken(s.expected, s.counters.requests)) {
    ++s.counters.upgrades;
  }
  s.watch = !s.held.empty() || s.recovery.waits();
}

}  // namespace urnic::ib
