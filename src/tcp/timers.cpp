// Timers: which deadline is next, and what each timer does (RFC 9293 3.8.1, 3.8.4, 3.8.6.1; 6298).
#include <algorithm>

#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

Instant user_deadline(const Tcb& t) {
  if (t.config.user_timeout == Duration::zero()) return Instant::never();
  return t.timers.stalled_since + t.config.user_timeout;
}

// The reason to report when the peer does not reply.
CloseReason silence(const Tcb& t) {
  return t.soft_error ? CloseReason::Unreachable : CloseReason::TimedOut;
}

// The peer does not reply: RFC 9293 3.10.8 deletes the connection without another segment.
void give_up(Tcb& t) {
  enter_closed(t, silence(t));
}

// If full segments time out repeatedly, the path may have a smaller MTU without reporting it (RFC
// 2923 2.1). Halves the MSS, down to what every path carries (RFC 4821 7.7, eff_pmtu of 7.2). It
// does not grow again.
void look_for_black_hole(Tcb& t) {
  constexpr std::uint8_t kTimeouts = 3;
  if (!t.config.black_hole || t.timers.retries < kTimeouts || t.sent_segments.empty()) return;
  const std::uint32_t least = default_mss(t.config);
  if (t.snd.mss <= least || t.sent_segments.front().len + least / 4 < emss(t)) return;
  shrink_mss(t, std::max(std::uint32_t{t.snd.mss} / 2, least));
}

void on_retransmit(Tcb& t, Instant now) {
  const bool opening = !synchronized(t.state);
  const std::uint8_t limit = opening ? t.config.syn_retries : t.config.data_retries;
  if (t.timers.retries >= limit) {
    give_up(t);
    return;
  }
  const bool first = t.timers.retries == 0;
  ++t.timers.retries;
  rtt_back_off(t.rtt, t.config);
  t.timers.retransmit = now + t.rtt.rto;
  if (opening) {
    t.syn_due = t.syn_lost = true;
    // The network may drop a SYN that requests ECN (RFC 3168 6.1.1.1).
    if (t.state == State::SynSent) t.ecn_on = false;
    return;
  }
  look_for_black_hole(t);
  loss_on_timeout(t, first, now);
}

void on_persist(Tcb& t) {
  t.timers.persist = Instant::never();
  if (t.timers.retries >= t.config.data_retries) {
    give_up(t);
    return;
  }
  ++t.timers.retries;
  t.probe_due = true;
}

// While data is in flight, retransmissions serve as probes, and the connection ends at the same
// time as with probes. If the next retransmission would come later than the next probe (long round
// trip, backed-off timeout), it is sent at the time of the probe, so that no connection ends
// without having probed its peer.
void keepalive_of_flight(Tcb& t, Instant idle_at, Instant now) {
  const Instant gone_at = idle_at + t.config.keepalive_interval * t.config.keepalive_probes;
  if (gone_at <= now) {
    abort(t, now, silence(t));
    return;
  }
  const Instant next = earlier(now + t.config.keepalive_interval, gone_at);
  t.timers.keepalive = next;
  Instant& turn = t.timers.retransmit;
  if (!turn.is_never() && turn >= next && t.timers.retries < t.config.data_retries) turn = now;
}

void on_keepalive(Tcb& t, Instant now) {
  const Instant due = t.timers.keepalive;
  t.timers.keepalive = Instant::never();
  if (t.config.keepalive == Duration::zero() || !synchronized(t.state)) return;
  // The timers did not run for longer than a reply may take: the process was stopped, or the
  // machine slept. Replies may be waiting unread, so the probes start again.
  if (now - due > t.config.keepalive_interval) {
    t.timers.keepalive_sent = 0;
    t.timers.last_received = now - t.config.keepalive;
  }
  if (t.timers.keepalive_sent == 0) {
    const Instant idle_at = t.timers.last_received + t.config.keepalive;
    if (idle_at > now) {  // a segment arrived meanwhile
      t.timers.keepalive = idle_at;
      return;
    }
    if (flight(t) != 0) {
      keepalive_of_flight(t, idle_at, now);
      return;
    }
  }
  if (t.timers.keepalive_sent >= t.config.keepalive_probes) {
    abort(t, now, silence(t));
    return;
  }
  ++t.timers.keepalive_sent;
  t.keepalive_due = true;
  t.timers.keepalive = now + t.config.keepalive_interval;
}

void on_trim(Tcb& t) {
  t.timers.trim = Instant::never();
  t.sent_segments.trim();
  t.rcv.holes.trim();
}

}  // namespace

void set_keepalive(Tcb& t, Duration idle, Instant now) {
  t.config.keepalive = idle;
  t.config.keepalive_interval = idle / 3;
  t.config.keepalive_probes = 3;
  t.timers.keepalive_sent = 0;
  t.timers.keepalive = Instant::never();
  if (synchronized(t.state)) arm_keepalive(t, now);
}

void probe_peer(Tcb& t, Instant now) {
  if (!synchronized(t.state)) return;
  if (flight(t) != 0) {  // data in flight works as a probe, so resend it now
    if (!t.timers.retransmit.is_never()) t.timers.retransmit = now;
    return;
  }
  t.keepalive_due = true;
}

void arm_keepalive(Tcb& t, Instant now) {
  if (t.config.keepalive == Duration::zero()) return;
  t.timers.keepalive = now + t.config.keepalive;
}

Instant next_deadline(const Tcb& t) {
  const Timers& k = t.timers;
  const Instant often = earlier(earlier(k.retransmit, k.persist),
                                earlier(k.delayed_ack, earlier(k.reorder, probe_deadline(t))));
  const Instant seldom = earlier(earlier(k.keepalive, k.time_wait), earlier(k.trim, k.held));
  return earlier(earlier(often, seldom), user_deadline(t));
}

void on_deadline(Tcb& t, Instant now) {
  if (t.state == State::Closed || t.rst_due) return;
  if (t.timers.time_wait <= now) {
    enter_closed(t, CloseReason::None);
    return;
  }
  if (user_deadline(t) <= now) {
    give_up(t);
    return;
  }
  if (t.timers.delayed_ack <= now) {
    t.timers.delayed_ack = Instant::never();
    if (t.rcv.ack_pending) t.rcv.ack_due = true;
  }
  if (t.timers.held <= now) {
    t.timers.held = Instant::never();
    t.held_due = true;
  }
  if (t.timers.reorder <= now) loss_on_reordering_timer(t, now);
  // The probe replaces the retransmission timer, and restarts it when it is sent (RFC 8985 7.2,
  // 7.3).
  if (probe_deadline(t) <= now) {
    t.loss.rack.probe_due = true;
  } else if (t.timers.retransmit <= now) {
    on_retransmit(t, now);
  }
  if (t.timers.persist <= now) on_persist(t);
  if (t.timers.keepalive <= now) on_keepalive(t, now);
  if (t.timers.trim <= now) on_trim(t);
}

}  // namespace urnic::tcp
