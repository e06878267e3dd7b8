// Decides whether a segment is acceptable, and how its payload relates to what was received before.
// Changes no state. The order of tests is that of RFC 9293 3.10.7.3 (SYN-SENT) and 3.10.7.4 (other
// states), with RFC 5961 for RST, SYN and ACK and RFC 7323 5 for timestamps.
#include <algorithm>

#include "tcp/predict.h"
#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

// TS.Recent proves nothing any more once the peer's clock may have advanced half its range (RFC
// 7323 5.5).
constexpr Duration kTsRecentLife = Duration::s(24 * 86400);

Check answer(Action a) {
  Check c;
  c.action = a;
  return c;
}

// The reply to an unacceptable segment. RFC 9293 requires an ACK. Without a limit, two confused
// ends could answer each other's empty ACKs for ever, so replies to empty segments share the
// challenge budget (RFC 5961 7). The exception is the form that keepalive and window probes have.
Check unacceptable(const Segment& s, std::int32_t distance) {
  if (s.has(kRst)) return answer(Action::Discard);
  return answer(s.seq_len() == 0 && distance != -1 ? Action::ChallengeAck : Action::Ack);
}

bool paws_rejects(const Tcb& t, const Segment& s, Instant now) {
  return static_cast<std::int32_t>(s.opts.tsval - t.rcv.ts_recent) < 0 &&
         now - t.rcv.ts_recent_at < kTsRecentLife;
}

// Classifies the payload in SYN-SENT, before any byte was received; also the data of a SYN-ACK.
void classify_first(const Tcb& t, const Segment& s, Check* c) {
  const std::uint64_t len = s.payload.size();
  c->begin = c->new_begin = StreamOffset(0);
  c->end = StreamOffset(len);
  c->new_end = std::min(c->end, t.rcv.adv);
  c->fin = s.has(kFin) && c->end <= t.rcv.adv;
  if (len == 0) {
    c->arrival = c->fin ? Arrival::InOrder : Arrival::None;
  } else if (c->new_end == c->new_begin) {
    c->arrival = Arrival::Window;
  } else {
    c->arrival = c->new_end == c->end ? Arrival::InOrder : Arrival::Overlap;
  }
}

Check check_syn_sent(const Tcb& t, const Segment& s) {
  bool acceptable = false;
  if (s.has(kAck)) {
    acceptable = s.ack > t.snd.iss && s.ack <= snd_nxt_seq(t);
    if (!acceptable) return answer(s.has(kRst) ? Action::Discard : Action::Rst);
  }
  if (s.has(kRst)) return answer(acceptable ? Action::Reset : Action::Discard);
  if (!s.has(kSyn)) return answer(Action::Discard);
  Check c = answer(Action::Process);
  c.ack_acceptable = acceptable;
  classify_first(t, s, &c);
  return c;
}

// `distance`: from RCV.NXT to the first payload byte.
void classify(const Tcb& t, const Segment& s, std::int64_t distance, Check* c) {
  const HoleList& holes = t.rcv.holes;
  const StreamOffset nxt = holes.rcv_nxt();
  const std::uint64_t len = s.payload.size();
  c->begin = c->end = c->new_begin = c->new_end = nxt;
  if (len == 0 && !s.has(kFin)) return;
  if (t.rcv.fin_taken) {  // nothing can follow the end of the stream (RFC 9293 3.10.7.4, seventh)
    c->arrival = Arrival::Duplicate;
    c->fin_again = s.has(kFin) && s.seq + static_cast<std::uint32_t>(len) + 1 == rcv_nxt_seq(t);
    return;
  }
  c->begin = StreamOffset(nxt.value() + static_cast<std::uint64_t>(distance));
  c->end = c->begin + len;
  const StreamOffset edge = t.rcv.fin_known ? std::min(t.rcv.adv, t.rcv.fin_at) : t.rcv.adv;
  c->new_begin = std::min(std::max(c->begin, nxt), c->end);
  c->new_end = std::max(c->new_begin, std::min(c->end, edge));
  // A FIN needs no room in the window. A FIN that contradicts an earlier one is ignored.
  c->fin = s.has(kFin) && c->end >= nxt && c->end <= t.rcv.adv &&
           (t.rcv.fin_known ? c->end == t.rcv.fin_at : c->end >= holes.highest());
  if (len == 0) {
    c->arrival = !c->fin || c->begin < nxt ? Arrival::Duplicate
                 : c->begin == nxt         ? Arrival::InOrder
                                           : Arrival::OutOfOrder;
    return;
  }
  if (c->end <= nxt) {
    c->arrival = Arrival::Duplicate;
  } else if (c->begin >= t.rcv.adv) {
    c->arrival = Arrival::Window;
  } else if (c->begin == nxt && c->new_end == c->end &&
             (holes.size() == 0 || c->end <= holes[0].block)) {
    c->arrival = Arrival::InOrder;
  } else if (!holes.any_new(c->new_begin, c->new_end)) {
    c->arrival = Arrival::Duplicate;
  } else if (c->begin > nxt && holes.all_new(c->new_begin, c->new_end)) {
    c->arrival = holes.exceeds_limit(c->new_begin, c->new_end) ? Arrival::HoleLimit
                 : c->new_end == c->end                        ? Arrival::OutOfOrder
                                                               : Arrival::Overlap;
  } else {
    c->arrival = Arrival::Overlap;
  }
}

// First and fourth test of RFC 9293 3.10.7.4: where the segment lies relative to RCV.NXT and the
// window. A FIN may come directly after the window.
bool in_window(std::int64_t distance, std::uint32_t len, std::int64_t window, bool bare_fin) {
  if (len == 0) return distance == 0 || (distance > 0 && distance < window);
  if (distance == 0) return true;  // with a closed window: valid ACKs and probes (3.10.7.4, first)
  if (bare_fin && distance == window) return true;
  return distance < window && distance + len > 0;
}

Check check_synchronized(const Tcb& t, const Segment& s, Instant now) {
  const std::int32_t distance = s.seq - rcv_nxt_seq(t);
  if (t.ts_on && !s.has(kRst)) {
    if (!s.opts.has_ts) {
      if (!s.has(kSyn)) return answer(Action::Discard);  // RFC 7323 3.2
    } else if (paws_rejects(t, s, now)) {
      return unacceptable(s, distance);  // R1 of RFC 7323 5.3
    }
  }
  std::int64_t at = distance;
  if (t.state == State::SynReceived && s.has(kSyn) && !s.has(kRst) && s.seq == t.rcv.irs) {
    // The peer's SYN arrived again. If it acknowledges ours, it ends a simultaneous open (RFC 9293
    // 3.5, figure 8). If not, our SYN-ACK was lost, or the network duplicated the SYN.
    if (!s.has(kAck)) return answer(Action::SynAck);
    at = 0 - static_cast<std::int64_t>(t.rcv.holes.rcv_nxt().value());
  } else {
    const auto window = static_cast<std::int64_t>(
        t.rcv.adv > t.rcv.holes.rcv_nxt() ? t.rcv.adv - t.rcv.holes.rcv_nxt() : 0);
    const bool bare_fin = s.payload.empty() && s.has(kFin) && !s.has(kSyn);
    if (!in_window(distance, s.seq_len(), window, bare_fin)) {
      // Data received before continues as a duplicate: its ACK may be new, and a D-SACK can report
      // it. Every other segment is rejected here.
      const bool old = distance < 0 && s.seq_len() != 0 && !s.has(kSyn) && !s.has(kRst);
      if (!old) return unacceptable(s, distance);
    }
    if (s.has(kRst)) {  // RFC 5961 3.2
      return answer(distance == 0 ? Action::Reset : Action::ChallengeAck);
    }
    if (s.has(kSyn)) return answer(Action::ChallengeAck);  // RFC 5961 4.2
    // Bytes from before the stream began. No honest peer sends them.
    const auto nxt = static_cast<std::int64_t>(t.rcv.holes.rcv_nxt().value());
    if (nxt + at + (t.rcv.fin_taken ? 1 : 0) < 0) return answer(Action::Discard);
  }
  if (!s.has(kAck)) return answer(Action::Discard);

  const std::int32_t acked = s.ack - snd_una_seq(t);
  Check c = answer(Action::Process);
  if (t.state == State::SynReceived) {
    if (acked <= 0 || s.ack > snd_nxt_seq(t)) return answer(Action::Rst);
  } else {
    // RFC 5961 5.2: [SND.UNA - MAX.SND.WND, SND.NXT].
    const std::int64_t highest = std::int64_t{flight(t)} + (t.snd.probe_out ? 1 : 0);
    if (acked > highest || acked < -static_cast<std::int64_t>(t.snd.max_wnd)) {
      return answer(Action::ChallengeAck);
    }
  }
  c.ack_acceptable = true;
  classify(t, s, at, &c);
  return c;
}

Check check_general(const Tcb& t, const Segment& s, Instant now) {
  if (t.state == State::Closed || t.rst_due) return answer(Action::Discard);
  if (t.state == State::SynSent) return check_syn_sent(t, s);
  return check_synchronized(t, s, now);
}

}  // namespace

Check check(const Tcb& t, const Segment& s, Instant now) {
  // One variable, so that the compiler builds it in the caller's return slot.
  Check c;
  if (!check_predicted(t, s, &c)) [[unlikely]]
    c = check_general(t, s, now);
  return c;
}

}  // namespace urnic::tcp
