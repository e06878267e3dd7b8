// Opening, closing and aborting a connection (RFC 9293 3.5, 3.6, 3.10.1, 3.10.4, 3.10.5), and the
// states in which it ends.
#include <algorithm>

#include "tcp/listen.h"
#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

// A smaller MSS would leave no room for payload after the options. No IP path has so small an MTU
// (RFC 791 requires 68).
constexpr std::uint16_t kLeastMss = 48;

void open_common(Tcb& t, const Config& config, Seq iss) {
  t = Tcb{};
  t.config = config;
  t.config.window_shift = std::min<std::uint8_t>(config.window_shift, 14);
  t.config.mss = std::max(config.mss, kLeastMss);
  t.snd.iss = iss;
  t.snd.mss = default_mss(config);
  t.rcv.holes.set_limit(config.hole_limit);
  t.rcv.offer = StreamOffset(config.receive_buffer);
  t.rcv.quick_acks = config.quick_acks;
  rtt_open(t.rtt, t.config);
  t.syn_due = true;
}

// Sets what both SYNs agree on. Our own SYN carries the options that the configuration has on.
void negotiate(Tcb& t, const Options& peer) {
  t.snd.peer_mss = peer.has_mss ? peer.mss : 0;
  std::uint16_t mss = peer.has_mss ? peer.mss : default_mss(t.config);
  mss = std::min(mss, t.config.mss);
  if (t.config.mss_clamp != 0) mss = std::min(mss, t.config.mss_clamp);
  t.snd.mss = std::max(mss, kLeastMss);
  t.sack_on = t.config.sack && peer.sack_permitted;
  t.ts_on = t.config.timestamps && peer.has_ts;
  t.naming_on = t.sack_on && offers_naming(t.config) && peer.corruption_permitted;
  if (t.config.window_scaling && peer.has_wscale) {
    t.rcv.wscale = t.config.window_shift;
    t.snd.wscale = peer.wscale;
  }
}

// Processes the peer's SYN in any state.
void take_syn(Tcb& t, const Segment& syn, Instant now) {
  t.rcv.irs = syn.seq;
  t.rcv.last_ack_sent = rcv_nxt_seq(t);
  negotiate(t, syn.opts);
  if (t.ts_on) {
    t.rcv.ts_recent = syn.opts.tsval;
    t.rcv.ts_recent_at = now;
  }
  // The window of a SYN is never scaled (RFC 7323 2.2).
  t.snd.wnd = t.snd.max_wnd = syn.window;
  t.snd.edge = t.snd.una + syn.window;
  t.snd.wl1 = syn.seq;
  t.snd.wl2 = syn.has(kAck) ? syn.ack : t.snd.iss;
}

void established(Tcb& t, const Segment& s, AckResult* r, Instant now) {
  t.state = State::Established;
  t.syn_acked = 1;
  t.syn_due = false;
  t.timers.retransmit = t.timers.stalled_since = Instant::never();
  t.timers.retries = 0;
  // After a cookie the time of our SYN-ACK is unknown. The first data will measure the round trip.
  if (!t.syn_lost && !t.syn_repeated && !t.from_cookie) {
    rtt_sample(t.rtt, t.config, now - t.timers.last_sent);
  } else if (!t.from_cookie) {
    if (t.ts_on && s.opts.has_ts && s.opts.tsecr != 0) {
      const auto ticks = static_cast<std::int32_t>(ts_clock(t, now) - s.opts.tsecr);
      if (ticks >= 0) rtt_sample(t.rtt, t.config, Duration::ms(std::max(ticks, 1)));
    }
    if (t.syn_lost) rtt_after_syn_loss(t.rtt, t.config);
  }
  cc_open(t.cc, t.config, emss(t), t.syn_lost);
  corruption_open(t.loss.corruption, t.cc);
  // The first data is not a restart after idle time.
  t.timers.last_sent = now;
  t.timers.last_received = now;
  t.soft_error = false;
  arm_keepalive(t, now);
  r->established = r->send_unblocked = true;
}

}  // namespace

std::uint16_t default_mss(const Config& c) {
  return c.ip_header >= 40 ? 1220 : 536;
}

void open_active(Tcb& t, const Config& config, Seq iss, Instant now) {
  (void)now;
  open_common(t, config, iss);
  t.state = State::SynSent;
  t.ecn_on = config.ecn == EcnMode::Request;
}

void open_passive(Tcb& t, const Config& config, Seq iss, const Segment& syn, Instant now) {
  open_common(t, config, iss);
  t.state = State::SynReceived;
  t.passive = true;
  take_syn(t, syn, now);
  // RFC 3168 6.1.1: an ECN-setup SYN has both.
  t.ecn_on = config.ecn != EcnMode::Off && syn.has(kEce) && syn.has(kCwr);
}

void open_from_cookie(Tcb& t, const Config& config, Seq iss, const Segment& syn, Instant now) {
  open_passive(t, config, iss, syn, now);
  t.from_cookie = true;
  t.syn_due = false;
  t.syn_sent = 1;
  t.rcv.adv = std::max(t.rcv.adv, syn_window(t).edge);
}

void take_handshake(Tcb& t, const Segment& s, AckResult* r, Instant now) {
  if (t.state == State::SynSent) {
    take_syn(t, s, now);
    t.ecn_on = t.ecn_on && s.has(kEce) && !s.has(kCwr);  // an ECN-setup SYN-ACK has ECE alone
    if (s.has(kAck)) {
      established(t, s, r, now);
      t.rcv.ack_pending = t.rcv.ack_due = true;
      return;
    }
    // Simultaneous open: both SYNs crossed (RFC 9293 3.5, figure 8).
    t.state = State::SynReceived;
    t.syn_due = true;
    t.ecn_on = false;
    r->send_unblocked = true;
    return;
  }
  // SynReceived: check() has made sure that the ACK is for our SYN.
  if (s.has(kSyn)) t.rcv.ack_pending = t.rcv.ack_due = true;
  take_timestamp(t, s, now);
  established(t, s, r, now);
  if (!s.has(kSyn)) {
    t.snd.wnd = std::uint32_t{s.window} << t.snd.wscale;
    t.snd.max_wnd = std::max(t.snd.max_wnd, t.snd.wnd);
    t.snd.edge = t.snd.una + t.snd.wnd;
    t.snd.wl1 = s.seq;
    t.snd.wl2 = s.ack;
  }
}

void shutdown_send(Tcb& t, Instant now) {
  (void)now;
  t.snd.fin_wanted = true;
}

void abort(Tcb& t, Instant now, CloseReason why) {
  (void)now;
  if (t.state == State::Closed || t.rst_due) return;
  switch (t.state) {
    case State::SynReceived:
    case State::Established:
    case State::FinWait1:
    case State::FinWait2:
    case State::CloseWait: {
      // The RST carries SND.NXT and RCV.NXT, so those are kept.
      const State state = t.state;
      enter_closed(t, why);
      t.state = state;
      t.rst_due = true;
      return;
    }
    default:
      enter_closed(t, why);
      return;
  }
}

void take_reset(Tcb& t, Instant now) {
  (void)now;
  switch (t.state) {
    case State::SynSent:
      enter_closed(t, CloseReason::Refused);
      return;
    case State::SynReceived:
      enter_closed(t, t.passive ? CloseReason::Reset : CloseReason::Refused);
      return;
    case State::TimeWait:
    case State::Closed:
      enter_closed(t, CloseReason::None);
      return;
    default:
      // Also in CLOSING and LAST-ACK: the last data written may not have arrived. RFC 9293 3.10.7.4
      // does not say whether the program gets an error.
      enter_closed(t, CloseReason::Reset);
      return;
  }
}

bool may_challenge(Tcb& t, Instant now) {
  return t.challenge.allow(t.config.challenge_acks, t.config.challenge_key, now);
}

Segment reset_reply(const Tcb& t, const Segment& s, Instant now) {
  Segment r = closed_reply(s);
  r.opts.has_ts = t.ts_on;  // RFC 7323 3.2
  r.opts.tsval = ts_clock(t, now);
  r.opts.tsecr = t.rcv.ts_recent;
  return r;
}

bool after_reset_sent(Tcb& t) {
  if (t.state != State::SynSent || t.syn_sent != 1 || t.syn_again) return false;
  t.syn_again = t.syn_due = true;
  return true;
}

void enter_closed(Tcb& t, CloseReason why) {
  if (t.state != State::Closed) t.close_reason = why;
  t.state = State::Closed;
  t.syn_due = t.probe_due = t.keepalive_due = t.rst_due = t.held_due = false;
  t.rcv.ack_pending = t.rcv.ack_due = false;
  const Instant received = t.timers.last_received;
  t.timers = Timers{};
  t.timers.last_received = received;
  t.sent_segments.clear();
  t.rcv.holes.forget();
}

void enter_time_wait(Tcb& t, Instant now) {
  t.state = State::TimeWait;
  t.timers.retransmit = t.timers.persist = t.timers.keepalive = Instant::never();
  t.timers.time_wait = now + t.config.time_wait;
  t.sent_segments.clear();
}

bool packet_too_big(Tcb& t, std::uint32_t mtu, Seq quoted, Instant now) {
  (void)now;
  // E-18 and RFC 5927 4: a sender that does not know what is in flight is not on the path.
  const std::int32_t at = quoted - snd_una_seq(t);
  const std::uint32_t span = static_cast<std::uint32_t>(snd_nxt_seq(t) - snd_una_seq(t));
  const bool in_flight = at >= 0 && static_cast<std::uint32_t>(at) < span;
  if (!synchronized(t.state) || !in_flight) return false;
  const std::uint32_t headers = t.config.ip_header + std::uint32_t{kHeaderMin};
  const std::uint32_t mss = mtu > headers + kLeastMss ? mtu - headers : kLeastMss;
  if (mss >= t.snd.mss) return false;
  shrink_mss(t, mss);
  return true;
}

void shrink_mss(Tcb& t, std::uint32_t mss) {
  t.snd.mss = static_cast<std::uint16_t>(mss);
  // cwnd counts bytes; from now on its segments are smaller.
  t.cc.smss = emss(t);
  loss_on_smaller_mss(t);
}

void unreachable(Tcb& t, bool hard, Seq quoted, Instant now) {
  (void)now;
  const std::int32_t at = quoted - snd_una_seq(t);
  const std::int32_t span = snd_nxt_seq(t) - snd_una_seq(t);
  if (t.state == State::Closed || t.rst_due || at < 0 || (at >= span && at != 0)) return;
  if (hard && !synchronized(t.state) && t.syn_sent != 0) {
    enter_closed(t, CloseReason::Unreachable);
    return;
  }
  t.soft_error = true;  // RFC 5461: keep trying; this is reported as the reason if that fails
}

}  // namespace urnic::tcp
