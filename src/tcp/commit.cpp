// The receive side: accepts or refuses bytes, handles the FIN, decides which ACK that needs and
// which window we offer.
#include <algorithm>

#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

// `at` lies in the block that changed last. SACK reports that block first (RFC 2018 4).
void note_recent(ReceiveState& r, StreamOffset at) {
  const std::size_t block = r.holes.block_at(at);
  std::array<StreamOffset, 4> kept{};
  std::uint8_t n = 0;
  kept[n++] = at;
  for (std::uint8_t i = 0; i < r.recent_count && n < kept.size(); ++i) {
    const std::size_t b = r.holes.block_at(r.recent[i]);
    if (b != r.holes.size() && b != block) kept[n++] = r.recent[i];
  }
  r.recent = kept;
  r.recent_count = n;
}

void take_fin(Tcb& t, Instant now) {
  t.rcv.fin_taken = true;
  switch (t.state) {
    case State::SynReceived:
    case State::Established:
      t.state = State::CloseWait;
      break;
    case State::FinWait1:
      t.state = State::Closing;
      break;
    case State::FinWait2:
      enter_time_wait(t, now);
      break;
    default:
      break;
  }
}

// Decides when the ACK of in-order data without holes is due.
AckNeed schedule_ack(Tcb& t, std::uint32_t len, Instant now) {
  ReceiveState& r = t.rcv;
  r.ack_pending = true;
  r.unacked += len;
  // RFC 8257 3.2: the marks begin or end with this segment. RFC 2883 4: part of it is a duplicate.
  if (r.ece_turned || r.has_dsack) [[unlikely]] {
    r.ece_turned = false;
    r.ack_due = true;
    return AckNeed::Now;
  }
  switch (t.config.ack_policy) {
    case AckPolicy::PerBurst:
      return AckNeed::Pending;
    case AckPolicy::Immediate:
      r.ack_due = true;
      return AckNeed::Now;
    case AckPolicy::EverySecond:
      break;
  }
  if (r.quick_acks != 0) {
    --r.quick_acks;
    r.ack_due = true;
    return AckNeed::Now;
  }
  // RFC 9293 3.8.6.3: at least every second full-sized segment, and within the delay.
  if (r.unacked >= 2u * r.largest) {
    r.ack_due = true;
    return AckNeed::Now;
  }
  if (t.timers.delayed_ack.is_never()) t.timers.delayed_ack = now + t.config.delayed_ack;
  return AckNeed::Pending;
}

void note_dsack(Tcb& t, StreamOffset begin, StreamOffset end) {
  if (!t.sack_on || !t.config.dsack || begin >= end) return;
  t.rcv.has_dsack = true;
  t.rcv.dsack = begin;
  t.rcv.dsack_end = end;
}

AckNeed ack_now(Tcb& t) {
  t.rcv.ack_pending = t.rcv.ack_due = true;
  t.rcv.ece_turned = false;
  return AckNeed::Now;
}

}  // namespace

Receipt commit(Tcb& t, StreamOffset begin, StreamOffset end, bool fin, bool psh, Instant now) {
  (void)psh;  // E-7: a PSH changes nothing, the ACK goes after the burst or with the reply
  ReceiveState& r = t.rcv;
  Receipt out;
  const bool had_holes = r.holes.size() != 0;
  if (begin < end) {
    out.holes = r.holes.insert(begin, end);
    if (out.holes.change == HoleChange::None) {
      // The range is not new, or needs one hole too many; check() reports both earlier.
      out.rcv_nxt = r.holes.rcv_nxt();
      out.ack = ack_now(t);
      return out;
    }
    const std::uint64_t seen = std::min<std::uint64_t>(end - begin, t.config.mss);
    r.largest = std::max(r.largest, static_cast<std::uint16_t>(seen));
  }
  if (fin && !r.fin_taken) {
    r.fin_known = true;
    r.fin_at = end;
  }
  if (r.fin_known && !r.fin_taken && r.holes.rcv_nxt() == r.fin_at) {
    take_fin(t, now);
    out.fin = true;
  }
  out.rcv_nxt = r.holes.rcv_nxt();
  if (had_holes || r.holes.size() != 0) {
    // The segment was out of order, or it filled all or part of a gap (RFC 5681 4.2).
    switch (out.holes.change) {
      case HoleChange::None:
      case HoleChange::InOrder:
      case HoleChange::ClosedLowest:
        break;
      default:
        note_recent(r, begin);
        break;
    }
    out.ack = ack_now(t);
  } else if (fin || begin >= end) {
    out.ack = ack_now(t);
  } else {
    out.ack = schedule_ack(t, static_cast<std::uint32_t>(end - begin), now);
  }
  return out;
}

AckNeed refuse(Tcb& t, const Check& c, bool ulp, bool immediate_dup_ack, Instant now) {
  if (c.arrival == Arrival::None) return AckNeed::None;
  if (ulp) return immediate_dup_ack ? ack_now(t) : AckNeed::None;
  if (c.arrival == Arrival::Duplicate) note_dsack(t, c.begin, c.end);
  // Only the peer's FIN restarts the wait (RFC 9293 3.10.7.4, eighth).
  if (c.fin_again && t.state == State::TimeWait) t.timers.time_wait = now + t.config.time_wait;
  return ack_now(t);
}

void note_duplicate_part(Tcb& t, const Check& c) {
  const HoleList& holes = t.rcv.holes;
  // The first duplicate byte, and the end of its run.
  StreamOffset from = c.begin, to = c.end;
  if (c.begin < holes.rcv_nxt()) {
    to = std::min(to, holes.rcv_nxt());
  } else {
    std::size_t i = 0;
    while (i < holes.size() && holes[i].block_end <= from) ++i;
    if (i == holes.size() || holes[i].block >= to) return;
    from = std::max(from, holes[i].block);
    to = std::min(to, holes[i].block_end);
  }
  note_dsack(t, from, to);
}

void forget_out_of_order(Tcb& t) {
  t.rcv.holes.forget();
  t.rcv.has_dsack = false;
  if (!t.rcv.fin_taken) t.rcv.fin_known = false;
}

WindowNow window_now(const Tcb& t) {
  const ReceiveState& r = t.rcv;
  const StreamOffset nxt = r.holes.rcv_nxt();
  const std::uint64_t cap =
      std::min<std::uint64_t>(t.config.receive_buffer, std::uint64_t{0xffff} << r.wscale);
  StreamOffset edge = std::min(r.offer, nxt + cap);
  // Receiver's SWS avoidance (RFC 9293 3.8.6.2.2): the edge moves by a segment or half the buffer,
  // or stays; it never moves back.
  const std::uint64_t step = std::min<std::uint64_t>(t.config.receive_buffer / 2, t.config.mss);
  if (edge < r.adv + step) edge = std::min(std::max(r.adv, nxt), nxt + cap);
  std::uint64_t units = edge > nxt ? (edge - nxt) >> r.wscale : 0;
  // Rounding down must not shrink the window already promised, if there is room to round up.
  const std::uint64_t up = (units + 1) << r.wscale;
  if (nxt + (units << r.wscale) < r.adv && nxt + up <= r.offer) ++units;
  units = std::min<std::uint64_t>(units, 0xffff);
  return {static_cast<std::uint16_t>(units), nxt + (units << r.wscale)};
}

WindowNow syn_window(const Tcb& t) {
  const StreamOffset nxt = t.rcv.holes.rcv_nxt();
  const std::uint64_t room =
      std::min<std::uint64_t>({t.rcv.offer - nxt, t.config.receive_buffer, 0xffff});
  return {static_cast<std::uint16_t>(room), nxt + room};
}

void offer_receive_room(Tcb& t, std::uint64_t bytes) {
  // Room beyond any window means "no limit". The bound keeps the sum from overflowing.
  t.rcv.offer = t.rcv.holes.rcv_nxt() + std::min<std::uint64_t>(bytes, std::uint64_t{1} << 62);
}

bool set_receive_room(Tcb& t, std::uint64_t bytes, Instant now) {
  (void)now;
  ReceiveState& r = t.rcv;
  const StreamOffset nxt = r.holes.rcv_nxt();
  offer_receive_room(t, bytes);
  if (!synchronized(t.state) || r.fin_taken || t.rst_due) return false;
  const StreamOffset edge = window_now(t).edge;
  if (edge <= r.adv) return false;
  // Announce the window at once if it was nearly closed, or if it opens by half the buffer.
  // Otherwise the ACKs that data causes announce it.
  const std::uint64_t before = r.adv > nxt ? r.adv - nxt : 0;
  const bool was_shut =
      before < std::min<std::uint64_t>(t.config.receive_buffer / 2, 2u * t.config.mss);
  if (!was_shut && (ack_pending(t) || edge - r.adv < t.config.receive_buffer / 2)) return false;
  ack_now(t);
  return true;
}

}  // namespace urnic::tcp
