// Header prediction (Jacobson), inline: handles the next segment in order of an established
// connection, if it holds only data, ACK and PSH. Each function does the same as its namesake in
// tcb.h, or returns false and changes nothing if the segment is of another kind.
#pragma once

#include <algorithm>

#include "tcp/tcb_state.h"

namespace urnic::tcp {

// check() for an established connection without holes and the next segment in order.
inline bool check_predicted(const Tcb& t, const Segment& s, Check* c) {
  if (t.state != State::Established || (s.flags & ~kPsh) != kAck) return false;
  if (t.rcv.holes.size() != 0 || t.rcv.fin_known || t.rst_due) return false;
  const StreamOffset nxt = t.rcv.holes.rcv_nxt();
  if (s.seq != rcv_seq(t, nxt)) return false;
  if (t.ts_on &&
      (!s.opts.has_ts || static_cast<std::int32_t>(s.opts.tsval - t.rcv.ts_recent) < 0)) {
    return false;
  }
  const StreamOffset end = nxt + s.payload.size();
  if (end > t.rcv.adv) return false;
  if (static_cast<std::uint32_t>(s.ack - snd_una_seq(t)) > flight(t)) return false;
  c->action = Action::Process;
  c->arrival = s.payload.empty() ? Arrival::None : Arrival::InOrder;
  c->begin = c->new_begin = nxt;
  c->end = c->new_end = end;
  c->fin = false;
  c->ack_acceptable = true;
  return true;
}

// take_ack() for a segment that check_predicted() accepted: data whose ACK reports nothing new.
inline bool take_ack_predicted(Tcb& t, const Segment& s, Instant now) {
  if (s.payload.empty() || s.opts.sack_count != 0 || t.ecn_on) return false;
  if (s.ack != snd_una_seq(t) || s.seq < t.snd.wl1 || s.ack < t.snd.wl2) return false;
  const std::uint32_t wnd = std::uint32_t{s.window} << t.snd.wscale;
  if (wnd != t.snd.wnd || t.snd.edge != t.snd.una + wnd) return false;
  if (t.snd.edge <= t.snd.nxt) return false;  // a closed window: take_ack() counts probe replies
  if (t.ts_on && s.seq <= t.rcv.last_ack_sent) {
    t.rcv.ts_recent = s.opts.tsval;
    t.rcv.ts_recent_at = now;
  }
  t.snd.wl1 = s.seq;
  t.snd.wl2 = s.ack;
  t.timers.last_received = now;
  t.timers.keepalive_sent = 0;
  t.soft_error = false;
  return true;
}

// True if commit_predicted() will accept what check_predicted() accepted.
inline bool commits_predicted(const Tcb& t) {
  return t.config.ack_policy == AckPolicy::PerBurst && !t.rcv.fin_known;
}

// commit() for data in order without a FIN, with no holes before or after it and one ACK per burst
// (E-7).
inline bool commit_predicted(Tcb& t, StreamOffset begin, StreamOffset end) {
  ReceiveState& r = t.rcv;
  if (!commits_predicted(t)) return false;
  if (!r.holes.advance(begin, end)) return false;
  const auto len = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - begin, 0xffff));
  const auto full = static_cast<std::uint16_t>(std::min<std::uint32_t>(len, t.config.mss));
  if (full > r.largest) r.largest = full;
  r.ack_pending = true;
  r.unacked += static_cast<std::uint32_t>(end - begin);
  return true;
}

}  // namespace urnic::tcp
