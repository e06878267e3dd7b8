// Plans the next segment, in this order: RST, SYN, retransmissions, new data, FIN, probes, a
// pending ACK. plan_send() does not record anything as sent; sent() does.
#include <algorithm>

#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

constexpr std::uint32_t kTimestamps = 12;
// How long "more to come" may hold back less than a full segment.
constexpr Duration kHold = Duration::ms(200);

std::uint32_t plain_header(const Tcb& t) {
  return static_cast<std::uint32_t>(kHeaderMin) + (t.ts_on ? kTimestamps : 0);
}

// The SACK blocks to report, at most `room`; and the header bytes that `n` of them need.
std::uint32_t sack_blocks(const Tcb& t, std::uint32_t room) {
  if (!t.sack_on) return 0;
  const auto holes = static_cast<std::uint32_t>(t.rcv.holes.size());
  return std::min(holes + (t.rcv.has_dsack ? 1u : 0u), room);
}
std::uint32_t sack_blocks(const Tcb& t) {
  return sack_blocks(t, t.ts_on ? 3 : 4);
}
std::uint32_t sack_bytes(std::uint32_t n) {
  return n == 0 ? 0 : 4 + 8 * n;
}

SendPlan plan(Send kind, StreamOffset begin, std::uint32_t limit, std::uint32_t header) {
  SendPlan p;
  p.kind = kind;
  p.begin = begin;
  p.limit = limit;
  p.header = header;
  return p;
}

SendPlan plan_syn(const Tcb& t) {
  // Room for all options of our SYN: mss 4, sackOK and padding 4, TS 10, wscale 4.
  std::uint32_t header = kHeaderMin + 4;
  const bool answer = t.state == State::SynReceived;
  const bool ts = answer ? t.ts_on : t.config.timestamps;
  const bool sack = answer ? t.sack_on : t.config.sack;
  const bool wscale =
      t.config.window_scaling && (!answer || t.rcv.wscale != 0 || t.snd.wscale != 0);
  if (ts) {
    header += kTimestamps;
  } else if (sack) {
    header += 4;
  }
  if (wscale) header += 4;
  if (answer ? t.naming_on : offers_naming(t.config)) header += kCorruptionPermitted;
  return plan(answer ? Send::SynAck : Send::Syn, StreamOffset(0), 0, header);
}

// True if a segment of `len` bytes may enter the network. Always true if the network is empty.
bool cwnd_admits(const Tcb& t, std::uint32_t len) {
  if (t.loss.state == Recovery::Open) [[likely]] {
    const std::uint32_t in_flight = flight(t);
    return in_flight == 0 || std::uint64_t{in_flight} + len <= t.cc.cwnd;
  }
  const std::uint32_t pipe = loss_pipe(t);
  if (pipe == 0) return true;
  return std::uint64_t{pipe} + len <= std::uint64_t{t.cc.cwnd} + loss_limited_transmit(t);
}

bool plan_retransmission(const Tcb& t, std::size_t i, SendPlan* out) {
  const Scoreboard& b = t.sent_segments;
  if (i >= b.size()) return false;
  const SentSegment& s = b[i];
  const std::uint32_t full = emss(t);
  const std::uint32_t len = std::min(s.len, full);
  if (!t.loss.force && !cwnd_admits(t, std::min(len, t.cc.smss))) return false;
  // If the peer shrank its window, probe it with the oldest segment only.
  if (i != 0 && s.begin + len > t.snd.edge) return false;
  *out = plan(s.len == 0 ? Send::Fin : Send::Retransmit, s.begin, len, plain_header(t));
  out->must_cut = s.len > full;
  out->fin = s.is(SentSegment::kFin) && len == s.len;
  return true;
}

Duration persist_interval(const Tcb& t) {
  Duration d = t.rtt.rto;
  for (std::uint8_t i = 0; i < t.timers.persist_backoff && d < t.config.rto_max; ++i) d = d * 2;
  return std::min(d, t.config.rto_max);
}

// Data waits for a window that is too small for it, and nothing is in flight whose ACK would open
// the window. The persist timer takes over (RFC 9293 3.8.6.1); it is also the override timer of the
// sender's SWS avoidance (3.8.6.2.1).
SendPlan plan_blocked(Tcb& t, std::uint32_t usable, Instant now) {
  if (t.probe_due) {
    SendPlan p = plan(usable != 0 ? Send::Data : Send::Probe, t.snd.nxt, usable != 0 ? usable : 1,
                      plain_header(t));
    p.must_cut = true;
    return p;
  }
  if (t.timers.persist.is_never()) {
    t.timers.persist = now + persist_interval(t);
    if (t.timers.stalled_since.is_never()) t.timers.stalled_since = now;
  }
  return {};
}

void fill_data(const Tcb& t, std::uint32_t limit, bool must_cut, bool fin, SendPlan* out) {
  out->kind = Send::Data;
  out->begin = t.snd.nxt;
  out->limit = limit;
  out->header = plain_header(t);
  out->must_cut = must_cut;
  out->fin = fin;
}

// The window is too small for the next segment. Returns true if something is sent anyway.
bool plan_into_small_window(Tcb& t, std::uint32_t usable, Instant now, SendPlan* out) {
  if (flight(t) != 0) return false;
  // Half of the largest window ever seen is enough (E-52; RFC 9293 3.8.6.2.1, rule 3).
  if (usable == 0 || std::uint64_t{usable} * 2 < t.snd.max_wnd) {
    *out = plan_blocked(t, usable, now);
    return out->kind != Send::None;
  }
  fill_data(t, usable, true, false, out);
  return true;
}

bool plan_data(Tcb& t, const SourceView& source, Instant now, SendPlan* out) {
  if (source.end <= t.snd.nxt || t.snd.fin_sent) return false;
  if (t.state != State::Established && t.state != State::CloseWait) return false;
  const std::uint32_t full = emss(t);
  const std::uint64_t have = source.end - t.snd.nxt;
  const auto want = static_cast<std::uint32_t>(std::min<std::uint64_t>(have, full));
  const bool idle = t.sent_segments.empty();
  if (want < full && !t.snd.fin_wanted) {
    if (source.more && !t.held_due) {
      if (t.timers.held.is_never()) t.timers.held = now + kHold;
      return false;
    }
    if (t.config.nagle && !idle) return false;  // RFC 9293 3.7.4
  }
  if (idle && t.config.restart_after_idle && now - t.timers.last_sent > t.rtt.rto) [[unlikely]] {
    cc_restart(t.cc, t.config);
    t.timers.last_sent = now;
  }
  if (!cwnd_admits(t, want)) return false;
  const std::uint64_t window = t.snd.edge > t.snd.nxt ? t.snd.edge - t.snd.nxt : 0;
  if (window < want) [[unlikely]] {
    return plan_into_small_window(t, static_cast<std::uint32_t>(window), now, out);
  }
  fill_data(t, want, false, t.snd.fin_wanted && want == have, out);
  // Add SACK blocks if the segment leaves room for them (E-24).
  if (t.sack_on && full - want >= sack_bytes(1)) {
    const std::uint32_t blocks = sack_blocks(t);
    if (blocks != 0) out->header += sack_bytes(std::min(blocks, (full - want - 4) / 8));
  }
  return true;
}

// Tail loss probe (RFC 8985 7.3): new data if there is any and the peer has room, else the last
// segment again.
SendPlan plan_tail_probe(Tcb& t, const SourceView& source) {
  SendPlan p;
  const std::uint32_t full = emss(t);
  const bool may = t.state == State::Established || t.state == State::CloseWait;
  if (may && source.end > t.snd.nxt && !t.snd.fin_sent) {
    const std::uint64_t have = source.end - t.snd.nxt;
    const auto want = static_cast<std::uint32_t>(std::min<std::uint64_t>(have, full));
    if (t.snd.nxt + want <= t.snd.edge) {
      fill_data(t, want, false, t.snd.fin_wanted && want == have, &p);
      return p;
    }
  }
  const SentSegment& last = t.sent_segments[t.sent_segments.size() - 1];
  const std::uint32_t len = std::min(last.len, full);
  p = plan(last.len == 0 ? Send::Fin : Send::Retransmit, last.begin, len, plain_header(t));
  p.must_cut = last.len > full;
  p.fin = last.is(SentSegment::kFin) && len == last.len;
  return p;
}

// True if a tail loss probe that waited for room is no longer needed, because everything was
// acknowledged or recovery began. It must not take the turn of new data, since nothing would
// request that turn again.
bool probe_is_pointless(const Tcb& t) {
  return t.loss.state != Recovery::Open || t.sent_segments.empty();
}

bool fin_is_next(const Tcb& t, const SourceView& source) {
  return t.snd.fin_wanted && !t.snd.fin_sent && source.end <= t.snd.nxt &&
         (t.state == State::Established || t.state == State::CloseWait);
}

void ack_sent(Tcb& t, const SendPlan& p) {
  ack_left(t, window_now(t));
  if (p.header > plain_header(t) && reports_dsack(t, planned_blocks(t, p))) {
    t.rcv.has_dsack = false;
  }
  if (p.corrupted) t.rcv.has_corrupted = false;
}

void fin_sent(Tcb& t) {
  t.snd.fin_sent = true;
  t.state = t.state == State::CloseWait ? State::LastAck : State::FinWait1;
}

void new_data_sent(Tcb& t, const SendPlan& p, std::uint32_t len, Instant now) {
  const bool fin = p.fin && len == p.limit;
  if (len == 0 && !fin) return;
  t.sent_segments.push(t.snd.nxt, len, fin, now);
  t.snd.nxt += len;
  if (len != 0) t.snd.probe_out = false;
  if (fin) fin_sent(t);
  new_data_left(t, now);
  if (t.loss.rack.probe_due) probe_was_sent(t, false, now);
  if (t.loss.state == Recovery::Recovery) t.loss.prr.out += len;
  cc_sent(t.cc, t.snd.una, t.snd.nxt);
}

void note_resent(Tcb& t, const SendPlan& p, std::uint32_t len, Instant now) {
  const std::size_t i = t.sent_segments.index_after(p.begin);
  if (i >= t.sent_segments.size() || t.sent_segments[i].begin != p.begin) return;
  if (len == 0 && t.sent_segments[i].len != 0) return;
  loss_retransmitted(t, i, std::min(len, t.sent_segments[i].len), now);
  t.timers.last_sent = now;
  // The oldest bytes were resent, so their timer restarts.
  if (i == 0 && !t.loss.impatient) t.timers.retransmit = now + t.rtt.rto;
  arm_retransmit(t, now);
  if (t.loss.rack.probe_due) probe_was_sent(t, true, now);
  if (t.loss.state == Recovery::Recovery) t.loss.prr.out += len;
}

void probe_sent(Tcb& t, const SendPlan& p, std::uint32_t len, Instant now) {
  if (p.limit == 0) {
    t.keepalive_due = false;
    return;
  }
  if (len == 0) return;
  t.probe_due = false;
  t.snd.probe_out = true;
  t.timers.last_sent = now;
  if (t.timers.persist_backoff < 255) ++t.timers.persist_backoff;
  t.timers.persist = now + persist_interval(t);
}

void syn_was_sent(Tcb& t, Instant now) {
  t.syn_due = false;
  if (t.syn_sent < 255) ++t.syn_sent;
  t.timers.retransmit = now + t.rtt.rto;
  t.timers.last_sent = now;
  if (t.timers.stalled_since.is_never()) t.timers.stalled_since = now;
}

}  // namespace

void arm_retransmit(Tcb& t, Instant now) {
  if (t.timers.retransmit.is_never()) t.timers.retransmit = now + t.rtt.rto;  // RFC 6298 5.1
  if (t.timers.stalled_since.is_never()) t.timers.stalled_since = now;
}

void ack_left(Tcb& t, const WindowNow& w) {
  ReceiveState& r = t.rcv;
  if (w.edge > r.adv) r.adv = w.edge;
  r.ack_pending = r.ack_due = false;
  r.unacked = 0;
  r.last_ack_sent = rcv_nxt_seq(t);
  t.timers.delayed_ack = Instant::never();
  if (t.config.congestion == CongestionControl::Dctcp) r.ece = r.ece_next;
}

void new_data_left(Tcb& t, Instant now) {
  t.probe_due = t.cwr_due = t.held_due = false;
  t.timers.persist = t.timers.trim = t.timers.held = Instant::never();
  t.timers.persist_backoff = 0;
  t.timers.last_sent = now;
  arm_retransmit(t, now);
}

std::uint32_t emss(const Tcb& t) {
  return t.snd.mss - (t.ts_on ? kTimestamps : 0);
}

SendPlan plan_ack(const Tcb& t) {
  if (t.rst_due || t.state == State::Closed || t.state == State::SynSent) return {};
  // A named segment that has arrived in the meantime need not be resent.
  if (t.rcv.has_corrupted && t.rcv.holes.any_new(t.rcv.corrupted, t.rcv.corrupted_end))
      [[unlikely]] {
    const std::uint32_t blocks = sack_blocks(t, t.ts_on ? 1 : 2);
    SendPlan p = plan(Send::Ack, t.snd.nxt, 0, plain_header(t) + kCorrupted + sack_bytes(blocks));
    p.corrupted = true;
    return p;
  }
  return plan(Send::Ack, t.snd.nxt, 0, plain_header(t) + sack_bytes(sack_blocks(t)));
}

std::uint32_t planned_blocks(const Tcb& t, const SendPlan& p) {
  const std::uint32_t bytes = p.header - plain_header(t) - (p.corrupted ? kCorrupted : 0);
  return bytes == 0 ? 0 : (bytes - 4) / 8;
}

SendPlan plan_syn_ack(const Tcb& t) {
  if (t.rst_due || t.state != State::SynReceived) return {};
  SendPlan p = plan_syn(t);
  p.repeated = t.syn_sent != 0;
  return p;
}

bool ack_pending(const Tcb& t) {
  return t.rcv.ack_pending || t.rcv.ack_due;
}

bool end_of_burst(Tcb& t, bool may_wait) {
  if (!t.rcv.ack_pending || t.rcv.ack_due || t.config.ack_policy != AckPolicy::PerBurst)
    return false;
  if (may_wait && t.rcv.unacked < 2u * t.rcv.largest) return true;
  t.rcv.ack_due = true;
  return false;
}

void acknowledge(Tcb& t) {
  if (t.rcv.ack_pending) t.rcv.ack_due = true;
}

namespace {

// Plans everything except new data on a connection without losses.
SendPlan plan_other(Tcb& t, const SourceView& source, Instant now) {
  SendPlan p;
  if (t.rst_due) return plan(Send::Rst, t.snd.nxt, 0, plain_header(t));
  if (!synchronized(t.state)) return t.syn_due ? plan_syn(t) : p;
  if (t.loss.rack.probe_due) return plan_tail_probe(t, source);
  if (t.loss.state != Recovery::Open) {
    // RFC 5682 3.1 step 2b: the second ACK must be for data not sent before.
    if (t.loss.undo.frto == Undo::Frto::Second && plan_data(t, source, now, &p)) return p;
    if (const std::size_t i = loss_next_lost(t); i < t.sent_segments.size()) {
      if (plan_retransmission(t, i, &p)) return p;
      return t.rcv.ack_due ? plan_ack(t) : p;  // new data does not overtake lost data
    }
    if (plan_data(t, source, now, &p)) return p;
    if (t.loss.state == Recovery::Recovery && plan_retransmission(t, loss_next_unsure(t), &p)) {
      return p;
    }
  }
  if (fin_is_next(t, source)) {
    p = plan(Send::Fin, t.snd.nxt, 0, plain_header(t));
    p.fin = true;
    return p;
  }
  if (t.keepalive_due) return plan(Send::Probe, t.snd.nxt, 0, plain_header(t));
  return t.rcv.ack_due ? plan_ack(t) : p;
}

}  // namespace

SendPlan plan_send(Tcb& t, const SourceView& source, Instant now) {
  if (t.loss.rack.probe_due && probe_is_pointless(t)) t.loss.rack.probe_due = false;
  // One variable, so that the compiler builds it in the caller's return slot.
  SendPlan p;
  const bool undisturbed = t.loss.state == Recovery::Open && !t.rst_due && !t.loss.rack.probe_due;
  if (!undisturbed || !plan_data(t, source, now, &p)) p = plan_other(t, source, now);
  return p;
}

void sent(Tcb& t, const SendPlan& p, std::uint32_t len, bool psh, Instant now) {
  (void)psh;
  switch (p.kind) {
    case Send::None:
      return;
    case Send::Rst:
      t.rst_due = false;
      t.state = State::Closed;
      return;
    case Send::Syn:
      syn_was_sent(t, now);
      t.rcv.adv = std::max(t.rcv.adv, syn_window(t).edge);
      return;
    case Send::SynAck:
      if (p.repeated || t.syn_sent != 0) t.syn_repeated = true;
      if (!p.repeated) syn_was_sent(t, now);
      ack_left(t, syn_window(t));
      return;
    case Send::Data:
      new_data_sent(t, p, len, now);
      break;
    case Send::Fin:
      if (t.snd.fin_sent) {
        note_resent(t, p, 0, now);
      } else {
        new_data_sent(t, p, 0, now);
      }
      break;
    case Send::Retransmit:
      note_resent(t, p, len, now);
      break;
    case Send::Probe:
      probe_sent(t, p, len, now);
      break;
    case Send::Ack:
      break;
  }
  ack_sent(t, p);
}

}  // namespace urnic::tcp
