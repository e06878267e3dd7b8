// The acknowledgement part of a segment (RFC 9293 3.10.7.4, fifth): its effect on our data, our
// window and our round-trip time. Runs for every acceptable segment, whether its payload is
// accepted or not (E-4).
#include <algorithm>

#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

// Returns true if the segment changed what may be sent.
bool take_window(Tcb& t, const Segment& s, std::int32_t acked) {
  if (!(t.snd.wl1 < s.seq || (t.snd.wl1 == s.seq && t.snd.wl2 <= s.ack))) return false;
  t.snd.wl1 = s.seq;
  t.snd.wl2 = s.ack;
  t.snd.wnd = std::uint32_t{s.window} << t.snd.wscale;
  t.snd.max_wnd = std::max(t.snd.max_wnd, t.snd.wnd);
  // The FIN is not a byte of the stream, so an edge that is one too high because of it does no
  // harm.
  const StreamOffset edge = t.snd.una + static_cast<std::uint32_t>(acked) + t.snd.wnd;
  const bool more = edge > t.snd.edge;
  t.snd.edge = edge;
  // A peer that answers window probes is alive, no matter how long it keeps the window closed (RFC
  // 9293 3.8.6.1).
  if (edge <= t.snd.nxt) t.timers.retries = 0;
  return more;
}

// Moves SND.UNA by `acked` > 0 of sequence space. Reports in `out` what left the scoreboard.
void advance(Tcb& t, std::uint32_t acked, Delivery* out) {
  StreamOffset una = t.snd.una + acked;
  if (una > t.snd.nxt) {
    if (t.snd.fin_sent) {
      t.snd.fin_acked = true;
      una = t.snd.nxt;
    } else {
      // The peer accepted the byte of a window probe.
      t.snd.probe_out = false;
      t.snd.nxt = una;
      t.timers.persist = Instant::never();  // armed again if more data waits
    }
  }
  t.snd.una = una;
  t.sent_segments.pop(una, t.snd.fin_acked, out);
}

// Returns the latest time at which a retransmission can have left if this segment answers it (RFC
// 8985 6.2 step 2). A later one would mean the shortest round trip ever, or the segment echoes an
// earlier timestamp.
Instant latest_answered_send(const Tcb& t, const Segment& s, Instant now) {
  Instant latest = now - t.loss.rack.min_rtt;
  if (t.ts_on && s.opts.has_ts && s.opts.tsecr != 0) {
    const auto ticks = static_cast<std::int32_t>(ts_clock(t, now) - s.opts.tsecr);
    const std::int64_t end_of_tick = (now.ns() / 1000000 - ticks + 1) * 1000000 - 1;
    if (ticks >= 0) latest = earlier(latest, Instant::from_ns(end_of_tick));
  }
  return latest;
}

// Karn's rule (RFC 6298 3): takes no sample from an ACK that covers a retransmission. The data
// after the retransmission may have arrived long ago and waited for the hole to close.
void take_sample(Tcb& t, const Segment& s, const Delivery& d, Instant now) {
  if (d.original && !d.resent) {
    rtt_sample(t.rtt, t.config, now - d.oldest_at);
  } else if (t.ts_on && s.opts.has_ts && s.opts.tsecr != 0) {
    // The echoed timestamp identifies the transmission that made the ACK advance (RFC 7323 4). One
    // tick is the smallest time it can resolve.
    const auto ticks = static_cast<std::int32_t>(ts_clock(t, now) - s.opts.tsecr);
    if (ticks >= 0) rtt_sample(t.rtt, t.config, Duration::ms(std::max(ticks, 1)));
  }
}

// Returns true if a pending ACK must leave before this segment is answered.
bool take_ecn(Tcb& t, const Segment& s, std::int32_t acked) {
  const bool ece = s.has(kEce);
  cc_ecn_feedback(t.cc, static_cast<std::uint32_t>(std::max(acked, 0)), ece,
                  t.snd.una + static_cast<std::uint32_t>(std::max(acked, 0)), t.snd.nxt);
  if (ece) loss_on_ecn_echo(t);
  if (t.config.congestion != CongestionControl::Dctcp) {
    if (s.has(kCwr)) t.rcv.ece = false;
    if (s.ecn == 3) t.rcv.ece = true;  // RFC 3168 6.1.3
    return false;
  }
  // RFC 8257 3.2: ECE tells for each byte whether it was marked, so no ACK may cover both kinds.
  if (s.payload.empty()) return false;
  const bool marked = s.ecn == 3;
  t.rcv.ece_next = marked;
  if (marked == t.rcv.ece) return false;
  t.rcv.ece_turned = true;
  if (ack_pending(t)) return true;
  t.rcv.ece = marked;
  return false;
}

// Leaves the states that waited for the ACK of our FIN.
void after_fin_acked(Tcb& t, AckResult* r, Instant now) {
  switch (t.state) {
    case State::FinWait1:
      t.state = State::FinWait2;
      break;
    case State::Closing:
      enter_time_wait(t, now);
      r->closed = true;
      break;
    case State::LastAck:
      enter_closed(t, CloseReason::None);
      r->closed = true;
      break;
    default:
      break;
  }
}

void on_progress(Tcb& t, const Segment& s, std::uint32_t acked, AckResult* r, Instant now) {
  const bool had_fin = t.snd.fin_acked;
  AckNews news;
  news.bytes = acked;
  if (t.loss.state != Recovery::Open || t.loss.rack.probe_out) {
    news.delivered.latest_answered_send = latest_answered_send(t, s, now);
  }
  const StreamOffset highest = t.loss.highest_sacked;
  advance(t, acked, &news.delivered);
  r->una_advanced = true;
  take_sample(t, s, news.delivered, now);
  if (t.sack_on) {
    // A cumulative ACK that stops at SACKed data: the peer has discarded that data (E-27).
    if (!t.sent_segments.empty() && t.sent_segments.front().is(SentSegment::kSacked)) {
      loss_on_reneging(t);
    }
    if (s.opts.sack_count != 0) news.sack = loss_take_sack(t, s, &news.delivered);
    rack_take(t, news.delivered, highest, now);
    if (s.opts.has_corrupted) [[unlikely]]
      take_corrupted(t, s);
  }
  loss_on_progress(t, s, news, now);
  t.timers.retries = 0;
  if (flight(t) == 0) {
    t.timers.retransmit = t.timers.stalled_since = Instant::never();  // RFC 6298 5.2
    if (t.sent_segments.capacity() > 8) t.timers.trim = now + Duration::s(1);
  } else {
    t.timers.stalled_since = now;
    if (!t.loss.impatient) t.timers.retransmit = now + t.rtt.rto;  // RFC 6298 5.3
  }
  if (t.snd.fin_acked && !had_fin) after_fin_acked(t, r, now);
}

// RFC 5681 2: the segment holds only the same ACK and the same window, and data is outstanding.
bool is_plain_duplicate(const Tcb& t, const Segment& s, std::uint32_t wnd_before) {
  return flight(t) != 0 && s.seq_len() == 0 && t.snd.wnd == wnd_before &&
         (std::uint32_t{s.window} << t.snd.wscale) == wnd_before;
}

}  // namespace

void take_timestamp(Tcb& t, const Segment& s, Instant now) {
  if (!t.ts_on || !s.opts.has_ts || s.seq > t.rcv.last_ack_sent) return;
  t.rcv.ts_recent = s.opts.tsval;
  t.rcv.ts_recent_at = now;
}

namespace {

// The rest of take_ack(), for a segment that acknowledges data or carries SACKs, or that arrives in
// an unusual state.
AckResult take_ack_in_full(Tcb& t, const Segment& s, std::int32_t acked, Instant now) {
  AckResult r;
  const std::uint32_t wnd_before = t.snd.wnd;
  r.send_unblocked = take_window(t, s, acked);
  if (acked > 0) {
    on_progress(t, s, static_cast<std::uint32_t>(acked), &r, now);
    r.send_unblocked = true;
  } else if ((flight(t) != 0 || t.loss.undo.armed || t.loss.rack.probe_out) &&
             (s.payload.empty() || s.opts.sack_count != 0)) {
    AckNews news;
    news.plain = is_plain_duplicate(t, s, wnd_before);
    if (t.sack_on && s.opts.sack_count != 0) {
      news.delivered.latest_answered_send = latest_answered_send(t, s, now);
      const StreamOffset highest = t.loss.highest_sacked;
      news.sack = loss_take_sack(t, s, &news.delivered);
      rack_take(t, news.delivered, highest, now);
      // While the oldest segment is missing, nothing else measures the round trip.
      const Delivery& d = news.delivered;
      if (t.config.rack && d.any && !d.again) rtt_sample(t.rtt, t.config, now - d.sent_at);
    }
    if (s.opts.has_corrupted) [[unlikely]]
      take_corrupted(t, s);
    loss_on_same_ack(t, s, news, now);
    r.duplicate = news.plain || news.sack.fresh != 0;
    r.send_unblocked = true;
  }
  r.una = t.snd.una;
  return r;
}

}  // namespace

AckResult take_ack(Tcb& t, const Segment& s, const Check& c, Instant now) {
  if (!synchronized(t.state)) [[unlikely]] {
    AckResult r;
    take_handshake(t, s, &r, now);
    // A SYN has been processed already, and its window is not scaled.
    if (synchronized(t.state) && !s.has(kSyn)) {
      const AckResult more = take_ack(t, s, c, now);
      r.send_unblocked |= more.send_unblocked;
    }
    r.una = t.snd.una;
    return r;
  }
  take_timestamp(t, s, now);
  t.timers.last_received = now;
  t.timers.keepalive_sent = 0;
  t.soft_error = false;
  const std::int32_t acked = s.ack - snd_una_seq(t);
  const bool ack_first = t.ecn_on && take_ecn(t, s, acked);
  // An old segment does not update the window either.
  if (!c.ack_acceptable || acked < 0) return {.ack_first = ack_first, .una = t.snd.una};
  if (acked == 0 && !s.payload.empty() && s.opts.sack_count == 0) {
    const bool more = take_window(t, s, 0);
    return {.send_unblocked = more, .ack_first = ack_first, .una = t.snd.una};
  }
  AckResult r = take_ack_in_full(t, s, acked, now);
  r.ack_first = ack_first;
  return r;
}

}  // namespace urnic::tcp
