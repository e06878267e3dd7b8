// Carries out InLogic's decision: a segment is cut through or refused, or the connection is
// downgraded (Figs 3, 5, 9, 10; E-5).

#include <algorithm>
#include <cassert>

#include "iwarp/receiver.h"
#include "iwarp/rx_frames.h"
#include "mpa/fpdu.h"

namespace urnic::iwarp {
namespace {

bool ends_a_send(const ddp::Admission* admissions, std::size_t count) {
  return std::any_of(admissions, admissions + count, [](const ddp::Admission& a) {
    const ddp::SegmentHeader& h = a.segment.header;
    return ddp::uses_receive(h.op) && h.last;
  });
}

// The arrival of the part of a segment inside the window, if the window cuts the segment.
tcp::Arrival arrival_inside(const tcp::HoleList& holes, const tcp::Check& check) {
  if (check.new_end == check.end) return check.arrival;
  const bool fresh = holes.all_new(check.begin, check.new_end);
  if (fresh && check.begin == holes.rcv_nxt()) return tcp::Arrival::InOrder;
  return fresh ? tcp::Arrival::OutOfOrder : check.arrival;
}

// The facts about the segment that decide() needs.
fastpath::SegmentFacts facts_of(const Connection& c, const InHand& in, Instant now) {
  const tcp::Check& check = in.check;
  const tcp::HoleList& holes = c.tcb.rcv.holes;
  fastpath::SegmentFacts facts;
  facts.arrival = arrival_inside(holes, check);
  facts.sn = in.seg.seq;
  facts.at_rcv_nxt = check.begin == holes.rcv_nxt();
  facts.reassembly_empty = c.buffer.empty() && !c.residue;
  facts.validation = in.validation;
  facts.payload = static_cast<std::uint32_t>(in.seg.payload.size());
  if (c.framing.marked() && !in.validation->passed()) facts.header = header_case(c, in);
  facts.now = now;
  if (facts.arrival == tcp::Arrival::Overlap && in.validation->all_valid) {
    facts.seam_on_boundary = true;
    const std::size_t inside = frames_inside(*in.validation, check);
    for (std::size_t i = 0; i < inside; ++i) {
      const fastpath::FrameResult& f = in.validation->frames[i];
      const StreamOffset b = check.begin + f.offset, e = b + f.length;
      if (holes.any_new(b, e) && !holes.all_new(b, e)) facts.seam_on_boundary = false;
      facts.frame_at_rcv_nxt |= b == holes.rcv_nxt();
    }
  }
  return facts;
}

}  // namespace

void Receiver::in_logic(Connection& c, const InHand& in, Instant now, Found* found) {
  const bool can_be_fast =
      c.context.config.crc && c.context.config.initiated_as == fastpath::ConnectionType::Fast;
  if (!can_be_fast) {  // permanently SLOW: nothing to decide (T1)
    ++c.counters.reasons[static_cast<std::size_t>(fastpath::Reason::Slow)];
    return slow_.store(c, in, now, found);
  }
  const tcp::Check& check = in.check;
  const fastpath::Validation& v = *in.validation;
  if (c.framing.marked()) [[unlikely]]
    judge_markers(c, in);
  fastpath::SegmentFacts facts;
  fastpath::PathDecision verdict;
  if (fastpath::plainly_fast(c.context, check.arrival, v)) [[likely]] {
    verdict.action = fastpath::PathAction::Fast;
    verdict.reason = fastpath::Reason::Aligned;
  } else {
    if (check.new_end < check.end && c.context.type == fastpath::ConnectionType::Fast &&
        frames_inside(v, check) == 0) {
      return rx_commit_.act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
    }
    facts = facts_of(c, in, now);
    verdict = fastpath::decide(c.context, facts);
  }
  ++c.counters.reasons[static_cast<std::size_t>(verdict.reason)];
  carry_out(c, in, facts, verdict, now, found);
}

// The only place where a decision is applied: the segment is treated accordingly, and the context
// changes with it.
inline void Receiver::carry_out(Connection& c, const InHand& in,
                                const fastpath::SegmentFacts& facts,
                                const fastpath::PathDecision& verdict, Instant now, Found* found) {
  using fastpath::PathAction;
  if (verdict.action == PathAction::Fast) {
    const FastResult r = cut_through(c, in, now, found);
    // If admit refuses the segment, nothing changes: no upgrade happens, no recovery ends.
    if (r != FastResult::Taken) return refuse_fast(c, r, in.check, now);
  }
  fastpath::apply(c.context, verdict, facts);
  switch (verdict.action) {
    case PathAction::Fast:
      if (verdict.upgraded) {
        ++c.counters.upgrades;
        note(s_, c, Note::Upgraded, verdict.reason);
      }
      break;
    case PathAction::Drop:
      if (verdict.counts) ++c.counters.recovery_attempts;
      note(s_, c, Note::Refused, verdict.reason);
      if (fastpath::tells_of_crc(verdict.reason)) tcp::note_corrupted(c.tcb, in.check);
      rx_commit_.ulp_drop(c, in.check, now);
      break;
    case PathAction::Downgrade:  // Fig 5: holes first, then the segment
      slow_.downgrade(c, verdict.reason);
      slow_.store(c, in, now, found);
      break;
    case PathAction::Keep:
      keep(c, in, now, found);
      break;
    case PathAction::Store:
      slow_.store(c, in, now, found);
      break;
  }
}

// The decision was FAST, but the contents of the segment cannot be accepted now.
void Receiver::refuse_fast(Connection& c, FastResult why, const tcp::Check& check, Instant now) {
  if (why == FastResult::NoReceive) {  // section 10, R-113..R-115: not a recovery attempt
    note_starved(c, check.new_begin, now);
  }
  rx_commit_.ulp_drop(c, check, now);  // a violation out of order waits until it is in order (E-6)
}

// The Send `starved_msn`, in a segment at `at`, was not accepted because it has no receive.
void Receiver::note_starved(Connection& c, StreamOffset at, Instant now) {
  ++c.counters.empty_rq_drops;
  c.starved_at = at;
  if (c.qp == nullptr) return;
  rx_commit_.want_receive(c);
  // The receive may have been posted just before we marked it as missing.
  if (c.stream->rq.has(c.starved_msn)) rx_commit_.receive_posted(*c.qp, now);
}

Receiver::FastResult Receiver::cut_through(Connection& c, const InHand& in, Instant now,
                                           Found* found) {
  const tcp::Check& check = in.check;
  fastpath::Validation& v = *in.validation;
  const std::size_t n = frames_inside(v, check);
  if (check.arrival != tcp::Arrival::Overlap) return cut_through_run(c, in, 0, n, now, found);
  tcp::note_duplicate_part(c.tcb, check);
  if (!fastpath::places_out_of_order(c.context)) {
    // From RCV.NXT on, kept bytes or not, since none of them was placed (E-41).
    std::size_t first = 0;
    while (first < n && check.begin + v.frames[first].offset < c.tcb.rcv.holes.rcv_nxt()) {
      ++first;
    }
    return first < n ? cut_through_run(c, in, first, n, now, found) : FastResult::Refused;
  }
  // Only the new frames, run by run.
  FastResult result = FastResult::Refused;
  for (std::size_t i = 0; i < n;) {
    const auto is_new = [&](std::size_t k) {
      const StreamOffset b = check.begin + v.frames[k].offset;
      return c.tcb.rcv.holes.any_new(b, b + v.frames[k].length);
    };
    if (!is_new(i)) {
      ++i;
      continue;
    }
    std::size_t last = i + 1;
    while (last < n && is_new(last)) ++last;
    if (result != FastResult::Taken && lacks_receive(c, in, last, n)) {
      // As a whole or not at all, as in cut_through_run().
      const bool again =
          c.qp != nullptr && c.qp->starved && c.starved_at == check.begin + v.frames[i].offset;
      if (!again) return FastResult::NoReceive;
    }
    const FastResult r = cut_through_run(c, in, i, last, now, found);
    if (r != FastResult::Taken && result == FastResult::Taken) {
      // The earlier runs stay accepted; the rest is refused like a separate segment.
      tcp::Check rest = check;
      rest.begin = rest.new_begin = check.begin + v.frames[i].offset;
      refuse_fast(c, r, rest, now);
      return result;
    }
    if (r != FastResult::Taken) return r;
    if (found->ends_stream()) return r;
    result = r;
    i = last;
  }
  return result;
}

// True if a new frame from `from` on carries a Send whose receive is not posted. Stores its MSN.
bool Receiver::lacks_receive(Connection& c, const InHand& in, std::size_t from, std::size_t to) {
  const tcp::Check& check = in.check;
  fastpath::Validation& v = *in.validation;
  ddp::Admitter admitter(*c.stream, false);
  ddp::Admission a;
  for (std::size_t i = from; i < to; ++i) {
    const fastpath::FrameResult& f = v.frames[i];
    const StreamOffset b = check.begin + f.offset;
    if (!c.tcb.rcv.holes.any_new(b, b + f.length)) continue;
    ByteView ulpdu;
    if (!ulpdu_of(c, in, f, &ulpdu)) return false;
    admitter.next(ulpdu, &a);
    if (a.what == ddp::Admit::NoReceive) {
      c.starved_msn = a.segment.header.msn;
      return true;
    }
    if (a.what != ddp::Admit::Place) return false;
  }
  return false;
}

// Returns false if memory shared with the peer has changed since the frame was validated (E-19).
bool Receiver::ulpdu_of(Connection& c, const InHand& in, const fastpath::FrameResult& frame,
                        ByteView* ulpdu) {
  if (c.framing.marked()) [[unlikely]]
    return strip_markers(c, in, frame, ulpdu);
  const std::uint8_t* const fpdu = in.seg.payload.data() + frame.offset;
  const std::uint32_t length = load_be16(fpdu);
  *ulpdu = {fpdu + mpa::kLengthField, length};
  return mpa::fpdu_size(length) == frame.length;
}

// Admits every FPDU, then places all, then commits, then delivers (E-5).
inline Receiver::FastResult Receiver::cut_through_run(Connection& c, const InHand& in,
                                                      std::size_t first, std::size_t last,
                                                      Instant now, Found* found) {
  const tcp::Check& check = in.check;
  fastpath::Validation& v = *in.validation;
  const auto& frames = v.frames;
  const StreamOffset begin = check.begin + frames[first].offset;
  StreamOffset end = check.begin + frames[last - 1].offset + frames[last - 1].length;
  const bool in_order = begin == c.tcb.rcv.holes.rcv_nxt();
  // TCP has already refused a whole segment that needs one hole too many. A run that is
  // shorter than its segment is next to received data, so it makes no hole.
  assert(!c.tcb.rcv.holes.exceeds_limit(begin, end));

  ddp::Admitter admitter(*c.stream, in_order);
  if (scratch_.admissions.size() < last - first)
    scratch_.admissions.resize(last - first);  // rare: it only grows
  std::size_t admitted = 0;
  ddp::Violation violation = ddp::Violation::None;
  bool starved = false;
  ByteView offending;
  for (std::size_t i = first; i < last; ++i) {
    ByteView ulpdu;
    if (!ulpdu_of(c, in, frames[i], &ulpdu)) return FastResult::Refused;
    ddp::Admission& a = scratch_.admissions[admitted];
    admitter.next(ulpdu, &a);
    if (a.what == ddp::Admit::Place) [[likely]] {
      ++admitted;
      continue;
    }
    if (a.what == ddp::Admit::NoReceive) {
      c.starved_msn = a.segment.header.msn;
      // As a whole or not at all (E-5), unless the segment arrives again. Then the consumer may be
      // waiting for an earlier Send in it before it posts the next receive.
      const bool again = in_order && c.qp != nullptr && c.qp->starved && c.starved_at == begin;
      if (!again || !ends_a_send(scratch_.admissions.data(), admitted))
        return FastResult::NoReceive;
      starved = true;
      end = check.begin + frames[i].offset;
      break;
    }
    if (!in_order) return FastResult::Refused;
    violation = a.violation;
    offending = ulpdu;
    end = check.begin + frames[i].offset;  // the FPDUs before it are valid and are delivered
    break;
  }
  ddp::MessageCounts counts;
  for (std::size_t i = 0; i < admitted; ++i) {
    const ddp::Violation gone = ddp::place(*c.stream, scratch_.admissions[i], &counts);
    if (gone != ddp::Violation::None) [[unlikely]] {
      if (!in_order) return FastResult::Refused;
      // The FPDUs before it are delivered, as before any violation.
      admitted = i;
      starved = false;
      violation = gone;
      (void)ulpdu_of(c, in, frames[first + i], &offending);
      end = check.begin + frames[first + i].offset;
      break;
    }
    RxCommit::note_placed(c, scratch_.admissions[i]);
  }
  const bool detour = in_order && c.tcb.rcv.holes.size() != 0 && !c.buffer.empty();
  const bool whole = violation == ddp::Violation::None && !starved && last == frames.size();
  if (starved) note_starved(c, end, now);
  if (detour) [[unlikely]] {
    c.counters.bytes_fast += commit_around_kept(c, begin, end, whole && check.fin,
                                                whole && in.seg.has(tcp::kPsh), counts, now, found);
  } else if (begin < end) {
    c.counters.bytes_fast += end - begin;
    rx_commit_.commit_range(c, begin, end, whole && check.fin, whole && in.seg.has(tcp::kPsh),
                            counts, now, found);
  }
  if (detour && !found->ends_stream()) take_kept(c, end, now, found);
  if (!found->ends_stream()) {
    found->opens_send_side |= admitted != 0 && !c.may_send();
    if (violation != ddp::Violation::None) found->violate(violation, offending);
  }
  // The bytes of an ended stream are acknowledged and discarded, so that both sides can close at
  // once.
  if (found->ends_stream()) rx_commit_.discard_payload(c, in, now, found);
  return FastResult::Taken;
}

}  // namespace urnic::iwarp
