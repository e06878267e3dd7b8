#include "tcp/rack.h"

#include <algorithm>

#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

constexpr Duration kMinRttLife = Duration::s(300);
// Two round trips of a local network are shorter than a scheduling delay.
constexpr Duration kLeastProbeTime = Duration::ms(2);
constexpr std::uint8_t kPersist = 16;  // 6.2 step 4
constexpr std::uint32_t kDupThresh = 3;

// RFC 8985 6.2 step 2: RACK_sent_after(the segment that arrived, `s`).
bool sent_before(Instant at, StreamOffset end, const Rack& r) {
  return at < r.sent_at || (at == r.sent_at && end < r.end);
}

Duration reordering_window(const Tcb& t) {
  const Rack& r = t.loss.rack;
  if (!r.reordered) {
    if (t.loss.state == Recovery::Recovery || t.loss.state == Recovery::Loss) {
      return Duration::zero();
    }
    if (t.sent_segments.sacked_segments() >= kDupThresh) return Duration::zero();
  }
  return std::min(r.min_rtt / 4 * r.widening, t.rtt.srtt);
}

void mark_lost(Tcb& t, std::size_t i) {
  t.sent_segments.mark_lost_again(i);
  // It must be resent now, even if later segments had their turn already.
  t.loss.high_rxt = std::min(t.loss.high_rxt, t.sent_segments[i].begin);
}

std::uint64_t acked_space(const Tcb& t) {
  return t.snd.una.value() + (t.snd.fin_acked ? 1 : 0);
}

}  // namespace

void rack_take(Tcb& t, const Delivery& d, StreamOffset highest_sacked, Instant now) {
  if (!d.any) return;
  Rack& r = t.loss.rack;
  if (d.original && d.lowest_end < highest_sacked) {
    // A segment sent once arrived after data sent later was SACKed: reordering (6.2 step 3), by
    // this much.
    r.reordered = true;
    const std::uint64_t by = (highest_sacked - d.lowest_end) / std::max(t.cc.smss, 1u) + 1;
    t.loss.reordering =
        static_cast<std::uint8_t>(std::clamp<std::uint64_t>(by, t.loss.reordering, 255));
  }
  const Duration rtt = now - d.sent_at;
  if (!d.again && (!r.has_min_rtt || rtt <= r.min_rtt || now - r.min_rtt_at > kMinRttLife)) {
    r.has_min_rtt = true;
    r.min_rtt = rtt;
    r.min_rtt_at = now;
  }
  if (r.any && sent_before(d.sent_at, d.end, r)) return;
  r.any = true;
  r.sent_at = d.sent_at;
  r.end = d.end;
  r.rtt = rtt;
}

void rack_on_dsack(Tcb& t) {
  Rack& r = t.loss.rack;
  if (r.has_dsack_round && t.snd.una < r.dsack_round) return;
  r.has_dsack_round = true;
  r.dsack_round = t.snd.nxt;
  if (r.widening < 255) ++r.widening;
  r.persist = kPersist;
}

void rack_on_recovered(Tcb& t) {
  Rack& r = t.loss.rack;
  if (r.persist == 0) return;
  if (--r.persist == 0) r.widening = 1;
}

bool rack_detect(Tcb& t, Instant now) {
  Rack& r = t.loss.rack;
  Scoreboard& b = t.sent_segments;
  t.timers.reorder = Instant::never();
  if (!r.any || b.empty()) return false;
  const Duration limit = r.rtt + reordering_window(t);
  bool found = false;
  // Segments sent only once left in stream order. The first one that is not overdue ends the
  // search, and the next search begins there.
  std::size_t i = b.index_after(std::max(t.loss.lost_edge, t.snd.una));
  for (; i < b.size(); ++i) {
    const SentSegment& s = b[i];
    constexpr auto kSettled =
        SentSegment::kSacked | SentSegment::kLost | SentSegment::kRetransmitted;
    if ((s.flags & kSettled) != 0) continue;
    if (!sent_before(s.sent_at, s.end(), r)) break;
    if (s.sent_at + limit > now) {
      t.timers.reorder = s.sent_at + limit;
      break;
    }
    mark_lost(t, i);
    found = true;
  }
  t.loss.lost_edge = i < b.size() ? b[i].begin : t.snd.nxt;
  // Retransmissions have an order of their own.
  while (const Scoreboard::Resent* again = b.oldest_resent()) {
    const std::size_t k = b.index_after(again->begin);
    if (!sent_before(again->at, b[k].end(), r)) break;
    if (again->at + limit > now) {
      t.timers.reorder = earlier(t.timers.reorder, again->at + limit);
      break;
    }
    mark_lost(t, k);
    found = true;
  }
  return found;
}

void rack_on_timeout(Tcb& t, Instant now) {
  Rack& r = t.loss.rack;
  Scoreboard& b = t.sent_segments;
  t.timers.reorder = Instant::never();
  r.probe_out = r.probe_due = false;
  const Duration limit = r.rtt + reordering_window(t);
  for (std::size_t i = 0; i < b.size(); ++i) {
    const SentSegment& s = b[i];
    if (s.is(SentSegment::kSacked)) continue;
    if (i == 0 || s.sent_at + limit <= now) b.mark_lost_again(i);
  }
  t.loss.high_rxt = t.loss.lost_edge = t.snd.una;
}

// ---- tail loss probe ----------------------------------------------------------------------------

Instant probe_deadline(const Tcb& t) {
  const Rack& r = t.loss.rack;
  if (!t.config.tlp || !t.sack_on || t.loss.state != Recovery::Open || t.sent_segments.empty() ||
      r.probe_out || r.probe_due || !t.rtt.measured || t.rtt.backoff != 0) {
    return Instant::never();
  }
  Duration wait = std::max(t.rtt.srtt * 2, kLeastProbeTime);
  // Less than two full segments may be waiting for the peer's delayed ACK (7.2; RFC 5681 4.2).
  if (flight(t) < 2 * t.cc.smss) wait = wait + t.config.rto_min;
  return earlier(std::max(t.timers.last_sent, t.timers.stalled_since) + wait, t.timers.retransmit);
}

void probe_was_sent(Tcb& t, bool again, Instant now) {
  Rack& r = t.loss.rack;
  r.probe_due = false;
  r.probe_out = true;
  r.probe_again = again;
  r.probe_flight = std::max(flight(t), t.cc.used);
  r.probe_end = t.snd.nxt.value() + (t.snd.fin_sent ? 1 : 0);
  t.timers.retransmit = now + t.rtt.rto;  // 7.3
}

bool probe_on_ack(Tcb& t, bool dsack, bool plain_duplicate) {
  Rack& r = t.loss.rack;
  const std::uint64_t una = acked_space(t);
  if (!r.probe_out || una < r.probe_end) return false;
  if (!r.probe_again || dsack || plain_duplicate) {
    r.probe_out = false;  // the probe was new data, or the original had arrived as well
    return false;
  }
  if (una == r.probe_end) return false;  // not known yet; the next ACK decides
  r.probe_out = false;
  return true;
}

}  // namespace urnic::tcp
