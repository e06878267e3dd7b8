#include "ib/answer_holes.h"

#include <algorithm>

#include "ib/send_progress.h"

namespace urnic::ib {

using verbs::awaits_response;
using verbs::Status;

namespace {

constexpr Duration kLeastPatience = Duration::us(500);

// The round trip time of the path, without the time that READs wait for others at the peer: at most
// the shortest seen, of which the reordering window is a quarter or more.
Duration round_trip(const SendState& s) {
  const Duration seen = s.log.round_trip();
  if (seen == Duration::zero()) return s.probe.round_trip();
  return std::min(seen, s.log.reordering_window() * 4);
}

// How much later than a response after it an expected response may arrive.
Duration window(const SendState& s) {
  return std::max(s.log.reordering_window(), round_trip(s) / 4);
}

// True if the peer is known to have accepted requests past una.
bool beyond_una(const SendState& s) {
  return s.hole.any && s.una.psn.before(s.hole.seen);
}

void look_again(SendState& s, Instant at) {
  s.hole.due = earlier(s.hole.due, at);
}

}  // namespace

bool may_keep(SendState& s, Psn p) {
  return keeps_ahead(s) && p - s.una.psn < ReadAhead::kReach && s.ahead.open() && !s.ahead.has(p);
}

void kept_ahead(SendState& s, Psn p, Instant now) {
  s.ahead.keep(p, now);
  ++s.counters.ahead;
  if (s.ahead.ends(p)) s.hole.wanted = true;  // there may be further missing parts of that READ
}

void note_hole(SendState& s, Psn end, Instant now) {
  HoleWatch& h = s.hole;
  if (!beyond_una(s)) h = {};
  if (!h.any || h.seen.before(end)) h.seen = end;
  if (h.any) return;
  h.any = true;
  look_again(s, now + window(s));
}

void close_hole(SendState& s, Instant now) {
  HoleWatch& h = s.hole;
  if (!h.any) return;
  bool checked = false;
  while (beyond_una(s) && s.una != s.fresh) {
    if (!awaits_response(s.wqes.wqe(s.una.wqe).op)) {
      const Psn end = s.awaiting.count == 0 ? h.seen : awaited_psn(s);
      if (!acknowledge(s, end.before(h.seen) ? end : h.seen)) break;
      checked = false;
      continue;
    }
    if (!s.ahead.has(s.una.psn)) break;
    // Its memory may be gone since.
    if (!checked && !s.wqes.may_touch(s.una.wqe))
      return fail(s, s.una.wqe, Status::LocalProtection);
    s.ahead.pass(s.una.psn, now);
    const std::uint32_t wqe = s.una.wqe;
    answered(s);
    checked = s.una.wqe == wqe;
  }
  if (beyond_una(s) && s.una != s.fresh) {
    look_again(s, now + window(s));
    return;
  }
  h = {};
  s.ahead.clear();
}

void holes_due(SendState& s, Instant now) {
  if (s.hole.due > now || s.hole.due.is_never()) return;
  s.hole.due = Instant::never();
  s.hole.wanted = true;
}

namespace {

// The first PSN missing in [from, to) that is not requested yet. For a peer without peer_parts
// nothing else of the READ, which ends at `end`, may be requested. `to`: there is none.
Psn first_to_ask(SendState& s, Psn from, Psn to, Psn end, Instant now) {
  const Duration trip = round_trip(s);
  const Duration most = std::max(kLeastPatience, trip * 2) + window(s);
  const bool known = trip != Duration::zero();
  const ReadAhead::Patience patience{most, known ? trip + window(s) : most};
  Instant until;
  Psn missing = s.ahead.first(false, from, to);
  if (missing == to || missing - s.una.psn >= ReadAhead::kReach) return to;
  if (!s.qp->peer_parts) {
    if (!s.ahead.asked(from, end, now, patience, &until)) return missing;
    look_again(s, until);
    return to;
  }
  for (Psn behind; s.ahead.covers(missing, now, patience, &until, &behind);) {
    look_again(s, until);
    if (!behind.before(to)) return to;
    missing = s.ahead.first(false, behind, to);
    if (missing == to || missing - s.una.psn >= ReadAhead::kReach) return to;
  }
  return missing;
}

}  // namespace

// Searches the READs and atomics that the peer has accepted.
bool next_missing(SendState& s, Instant now, MissingPart* out) {
  s.hole.wanted = false;
  if (!beyond_una(s) || s.awaiting.count == 0 || !s.ahead.open()) return false;
  for (std::uint32_t wqe = s.awaiting.oldest; wqe != s.wqes.queue().started(); ++wqe) {
    const verbs::SendWqe& w = s.wqes.wqe(wqe);
    if (!awaits_response(w.op)) continue;
    const Psn begin = s.wqes.part(wqe).psn, end = begin + s.wqes.packets(w);
    const Psn from = begin.before(s.una.psn) ? s.una.psn : begin;
    const std::uint32_t known = s.hole.seen - s.una.psn;
    if (from - s.una.psn >= std::min(known, ReadAhead::kReach)) break;
    // Past everything that has arrived, data may still be on its way.
    const Psn to = end - s.una.psn <= known ? end : s.hole.seen;
    const Psn missing = first_to_ask(s, from, to, end, now);
    if (missing == to) continue;
    const Psn behind = s.ahead.first(true, missing, to);
    if (!s.ahead.ask(missing, behind, s.una.psn, now)) break;
    look_again(s, now + std::max(kLeastPatience, round_trip(s) * 2) + window(s));
    s.hole.wanted = true;  // there may be another part to request
    out->at = {wqe, missing - begin, missing};
    out->packets = behind - missing;
    return true;
  }
  return false;
}

}  // namespace urnic::ib
