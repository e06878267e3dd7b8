// InLogic's verdict carried out: a segment is cut through, refused, or the connection downgraded
// (Figs 3, 5, 9, 10; E-5).

#include <algorithm>

#include "engine/engine.h"
#include "mpa/fpdu.h"

namespace urnic::engine {
namespace {

bool ends_a_send(const ddp::Admission* admissions, std::size_t count) {
  return std::any_of(admissions, admissions + count, [](const ddp::Admission& a) {
    const ddp::SegmentHeader& h = a.segment.header;
    return h.op >= ddp::Opcode::Send && h.op <= ddp::Opcode::SendSeInv && h.last;
  });
}

// E-45: frames of the segment that lie in the window whole; what reaches beyond it is not for us.
std::size_t frames_inside(const fastpath::Validation& v, const tcp::Check& check) {
  std::size_t n = v.frames.size();
  while (n != 0 && check.begin + v.frames[n - 1].offset + v.frames[n - 1].length > check.new_end) {
    --n;
  }
  return n;
}

// What the part of the segment inside the window is, where the window cuts it.
tcp::Arrival arrival_inside(const tcp::HoleList& holes, const tcp::Check& check) {
  if (check.new_end == check.end) return check.arrival;
  const bool fresh = holes.all_new(check.begin, check.new_end);
  if (fresh && check.begin == holes.rcv_nxt()) return tcp::Arrival::InOrder;
  return fresh ? tcp::Arrival::OutOfOrder : check.arrival;
}

}  // namespace

void Engine::in_logic(Connection& c, const Staged& s, const tcp::Check& check, Instant now) {
  using fastpath::Outcome;
  using fastpath::Reason;
  const bool can_be_fast =
      c.context.config.crc && c.context.config.initiated_as == fastpath::ConnectionType::Fast;
  if (can_be_fast && c.framing.marked()) [[unlikely]]
    judge_markers(c, s);
  if (can_be_fast && fastpath::plainly_fast(c.context, check.arrival, validation_)) [[likely]] {
    ++c.counters.reasons[static_cast<std::size_t>(Reason::Aligned)];
    const FastResult result = cut_through_run(c, s, 0, validation_.frames.size(), check, now);
    if (result != FastResult::Taken) not_taken(c, result, check, now);
    return;
  }
  if (check.new_end < check.end && c.context.type == fastpath::ConnectionType::Fast &&
      frames_inside(validation_, check) == 0) [[unlikely]] {
    act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
    return;
  }
  fastpath::SegmentFacts facts;
  facts.arrival = arrival_inside(c.tcb.rcv.holes, check);
  facts.sn = s.seg.seq;
  facts.at_rcv_nxt = check.begin == c.tcb.rcv.holes.rcv_nxt();
  facts.reassembly_empty = c.buffer.empty() && !c.residue;
  facts.validation = &validation_;
  facts.payload = static_cast<std::uint32_t>(s.seg.payload.size());
  if (can_be_fast && c.framing.marked() && !validation_.passed()) {
    facts.header = header_case(c, s, check);
  }
  facts.now = now;
  if (facts.arrival == tcp::Arrival::Overlap && validation_.all_valid) {
    facts.seam_on_boundary = true;
    const std::size_t inside = frames_inside(validation_, check);
    for (std::size_t i = 0; i < inside; ++i) {
      const fastpath::FrameResult& f = validation_.frames[i];
      const StreamOffset b = check.begin + f.offset, e = b + f.length;
      if (c.tcb.rcv.holes.any_new(b, e) && !c.tcb.rcv.holes.all_new(b, e))
        facts.seam_on_boundary = false;
    }
  }
  if (!can_be_fast) {  // permanently SLOW: nothing to decide (T1)
    ++c.counters.reasons[static_cast<std::size_t>(Reason::Slow)];
    store(c, s, check, now);
    return;
  }
  const fastpath::Verdict verdict = fastpath::decide(c.context, facts);
  ++c.counters.reasons[static_cast<std::size_t>(verdict.reason)];
  switch (verdict.outcome) {
    case Outcome::Fast:
      if (const FastResult r = cut_through(c, s, check, now); r != FastResult::Taken) {
        not_taken(c, r, check, now);
        break;
      }
      fastpath::apply(c.context, verdict, facts);
      if (verdict.upgraded) {
        ++c.counters.upgrades;
        note(c, Note::Upgraded, verdict.reason);
      }
      break;
    case Outcome::Drop:
      fastpath::apply(c.context, verdict, facts);
      if (verdict.counts) ++c.counters.recovery_attempts;
      note(c, Note::Refused, verdict.reason);
      ulp_drop(c, check, now);
      break;
    case Outcome::Downgrade:  // Fig 5: holes first, then the segment
      fastpath::apply(c.context, verdict, facts);
      ++c.counters.downgrades;
      note(c, Note::Downgraded, verdict.reason);
      tcp::forget_out_of_order(c.tcb);
      c.hole_counters.discard();
      if (c.stream != nullptr) c.stream->forget_out_of_order();
      c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
      store(c, s, check, now);
      break;
    case Outcome::Store:
      fastpath::apply(c.context, verdict, facts);
      store(c, s, check, now);
      break;
  }
}

void Engine::note(const Connection& c, Note what, fastpath::Reason why) {
  hooks_->on_note(what, c.key, reason_label(static_cast<std::size_t>(why)));
}

// The segment was decided FAST, but what it carries cannot be taken now.
void Engine::not_taken(Connection& c, FastResult why, const tcp::Check& check, Instant now) {
  if (why == FastResult::NoReceive) {  // section 10, R-113..R-115: not a recovery attempt
    note_starved(c, check.begin, now);
  }
  ulp_drop(c, check, now);  // a violation out of order waits until it is in order (E-6)
}

// The Send `starved_msn` was not taken for want of a receive, in a segment at `at`.
void Engine::note_starved(Connection& c, StreamOffset at, Instant now) {
  ++c.counters.empty_rq_drops;
  c.starved_at = at;
  if (c.qp == nullptr) return;
  ddp::SharedReceiveQueue* shared = c.stream->rq.shared();
  if (shared != nullptr && !c.qp->starved) shared->starved.push_back(c.id);
  // E-17; perhaps the receive was posted just before we said that it is missing.
  c.qp->starved = true;
  if (shared != nullptr) shared->wanted = true;
  if (c.stream->rq.has(c.starved_msn)) receive_posted(*c.qp, now);
}

Engine::FastResult Engine::cut_through(Connection& c, const Staged& s, const tcp::Check& check,
                                       Instant now) {
  const std::size_t n = frames_inside(validation_, check);
  if (check.arrival != tcp::Arrival::Overlap) return cut_through_run(c, s, 0, n, check, now);
  tcp::note_duplicate_part(c.tcb, check);
  // Only the new frames, run by run.
  FastResult result = FastResult::Refused;
  for (std::size_t i = 0; i < n;) {
    const auto is_new = [&](std::size_t k) {
      const StreamOffset b = check.begin + validation_.frames[k].offset;
      return c.tcb.rcv.holes.any_new(b, b + validation_.frames[k].length);
    };
    if (!is_new(i)) {
      ++i;
      continue;
    }
    std::size_t last = i + 1;
    while (last < n && is_new(last)) ++last;
    const FastResult r = cut_through_run(c, s, i, last, check, now);
    if (r != FastResult::Taken && result == FastResult::Taken) {
      // What came before stays taken; the rest is refused like a segment of its own.
      tcp::Check rest = check;
      rest.begin = rest.new_begin = check.begin + validation_.frames[i].offset;
      not_taken(c, r, rest, now);
      return result;
    }
    if (r != FastResult::Taken) return r;
    if (c.is_over() || c.stage == Stage::Terminated) return r;
    result = r;
    i = last;
  }
  return result;
}

// Admit every FPDU, then place all, then commit, then deliver (E-5).
inline Engine::FastResult Engine::cut_through_run(Connection& c, const Staged& s, std::size_t first,
                                                  std::size_t last, const tcp::Check& check,
                                                  Instant now) {
  const ByteView payload = s.seg.payload;
  const auto& frames = validation_.frames;
  const StreamOffset begin = check.begin + frames[first].offset;
  StreamOffset end = check.begin + frames[last - 1].offset + frames[last - 1].length;
  const bool in_order = begin == c.tcb.rcv.holes.rcv_nxt();
  // With one hole too many the range is TCP's to refuse; check() saw only the whole segment.
  if (c.tcb.rcv.holes.exceeds_limit(begin, end)) return FastResult::Refused;

  ddp::Admitter admitter(*c.stream, in_order);
  if (admissions_.size() < last - first) admissions_.resize(last - first);  // rare: it only grows
  std::size_t admitted = 0;
  ddp::Violation violation = ddp::Violation::None;
  bool starved = false;
  ByteView offending;
  for (std::size_t i = first; i < last; ++i) {
    const std::uint8_t* fpdu = payload.data() + frames[i].offset;
    ByteView ulpdu;
    if (c.framing.marked()) [[unlikely]] {
      if (!strip_markers(c, s, frames[i], &ulpdu)) return FastResult::Refused;
    } else {
      const std::uint32_t length = load_be16(fpdu);
      // The length was believed by the validation unit; memory shared with a peer may have changed.
      if (mpa::fpdu_size(length) != frames[i].length) return FastResult::Refused;
      ulpdu = {fpdu + mpa::kLengthField, length};
    }
    ddp::Admission& a = admissions_[admitted];
    admitter.next(ulpdu, &a);
    if (a.what == ddp::Admit::Place) [[likely]] {
      ++admitted;
      continue;
    }
    if (a.what == ddp::Admit::NoReceive) {
      c.starved_msn = a.segment.header.msn;
      // Whole or not at all (E-5), unless it is here again: then the consumer may be waiting for a
      // Send that is in front of this one before it posts the next receive.
      const bool again = in_order && c.qp != nullptr && c.qp->starved && c.starved_at == begin;
      if (!again || !ends_a_send(admissions_.data(), admitted)) return FastResult::NoReceive;
      starved = true;
      end = check.begin + frames[i].offset;
      break;
    }
    if (!in_order) return FastResult::Refused;
    violation = a.violation;
    offending = ulpdu;
    end = check.begin + frames[i].offset;  // what came before it is good and is delivered
    break;
  }
  ddp::MessageCounts counts;
  for (std::size_t i = 0; i < admitted; ++i) {
    ddp::place(*c.stream, admissions_[i], &counts);
    note_placed(c, admissions_[i]);
  }
  const std::uint64_t octets = end - begin;
  c.counters.bytes_fast += octets;
  const bool whole = violation == ddp::Violation::None && !starved && last == frames.size();
  if (starved) note_starved(c, end, now);
  if (octets != 0) {
    commit_range(c, begin, end, whole && check.fin, whole && s.seg.has(tcp::kPsh), counts, now);
  }
  if (c.is_over()) return FastResult::Taken;
  if (admitted != 0 && !c.first_fpdu_seen) first_fpdu(c, now);
  if (violation != ddp::Violation::None && c.stage != Stage::Terminated) {
    raise_terminate(c, violation, offending, now);
  }
  // A dead stream's octets are acknowledged and forgotten, so that both sides can close at once.
  if (!c.is_over() && c.stage == Stage::Terminated) discard_payload(c, s, check, now);
  return FastResult::Taken;
}

void Engine::note_placed(Connection& c, const ddp::Admission& a) {
  ++c.counters.fpdus_in[static_cast<std::size_t>(a.segment.header.op)];
  const std::uint64_t n = a.segment.payload.size();
  c.counters.bytes_copied += n;
  if (a.segment.header.op == ddp::Opcode::Write) [[likely]] {
    c.counters.write_bytes_in += n;
    c.counters.payload_placed += n;
    return;
  }
  switch (a.segment.header.op) {
    case ddp::Opcode::Write:
      return;
    case ddp::Opcode::ReadResponse:
      c.counters.read_response_bytes_in += n;
      break;
    case ddp::Opcode::Send:
    case ddp::Opcode::SendInv:
    case ddp::Opcode::SendSe:
    case ddp::Opcode::SendSeInv:
      c.counters.send_bytes_in += n;
      break;
    case ddp::Opcode::ReadRequest:
    case ddp::Opcode::Terminate:
      return;
  }
  c.counters.payload_placed += n;
}

}  // namespace urnic::engine
