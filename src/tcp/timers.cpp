// Time: which deadline is next, and what each timer does (RFC 9293 3.8.1, 3.8.4, 3.8.6.1; 6298).
#include <algorithm>

#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

Instant user_deadline(const Tcb& t) {
  if (t.config.user_timeout == Duration::zero()) return Instant::never();
  return t.timers.stalled_since + t.config.user_timeout;
}

// Nobody answers: RFC 9293 3.10.8 deletes the connection without another segment.
void give_up(Tcb& t) {
  enter_closed(t, t.soft_error ? CloseReason::Unreachable : CloseReason::TimedOut);
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
    t.syn_due = true;
    // A SYN that asks for ECN may be what is being dropped (RFC 3168 6.1.1.1).
    if (t.state == State::SynSent) t.ecn_on = false;
    return;
  }
  loss_on_timeout(t, first);
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

void on_keepalive(Tcb& t, Instant now) {
  t.timers.keepalive = Instant::never();
  if (t.config.keepalive == Duration::zero() || !synchronized(t.state)) return;
  if (t.timers.keepalive_sent == 0) {
    const Instant idle_at = t.timers.last_received + t.config.keepalive;
    if (idle_at > now) {  // something came in meanwhile
      t.timers.keepalive = idle_at;
      return;
    }
    if (flight(t) != 0) {  // retransmission is asking the peer already
      t.timers.keepalive = now + t.config.keepalive_interval;
      return;
    }
  }
  if (t.timers.keepalive_sent >= t.config.keepalive_probes) {
    abort(t, now, CloseReason::TimedOut);
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

void arm_keepalive(Tcb& t, Instant now) {
  if (t.config.keepalive == Duration::zero()) return;
  t.timers.keepalive = now + t.config.keepalive;
}

Instant next_deadline(const Tcb& t) {
  const Timers& k = t.timers;
  const Instant often = earlier(earlier(k.retransmit, k.persist), k.delayed_ack);
  const Instant seldom = earlier(earlier(k.keepalive, k.time_wait), k.trim);
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
    if (t.rcv.ack_owed) t.rcv.ack_due = true;
  }
  if (t.timers.retransmit <= now) on_retransmit(t, now);
  if (t.timers.persist <= now) on_persist(t);
  if (t.timers.keepalive <= now) on_keepalive(t, now);
  if (t.timers.trim <= now) on_trim(t);
}

}  // namespace urnic::tcp
