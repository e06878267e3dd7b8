// SLOW: through the reassembly buffer, FPDU by FPDU, in turns with the other connections (S3, R-8).

#include <algorithm>
#include <cassert>

#include "engine/engine.h"

namespace urnic::engine {
namespace {

// OutLogic's arbiter: octets one SLOW connection may have parsed before the others have their
// turn, and octets of all of them in one poll. FAST segments are placed as they come, at most a
// burst in a poll, which carries about as much.
constexpr std::uint64_t kDrainTurn = 64u << 10;
constexpr std::uint64_t kDrainRound = 256u << 10;

}  // namespace

// SLOW: into the reassembly buffer, TCP regards it as received (S3). What the validation unit has
// found good is not checked again when it is extracted.
void Engine::store(Connection& c, const InHand& in, Instant now) {
  const tcp::Check& check = in.check;
  const bool slow_data = c.stage != Stage::Opening && c.stage != Stage::Startup;
  if (check.arrival == tcp::Arrival::Overlap) tcp::note_duplicate_part(c.tcb, check);
  StreamOffset at = check.new_begin, from, to;
  bool stored = false;
  if (in.validation != nullptr && check.arrival == tcp::Arrival::InOrder && c.buffer.empty() &&
      c.buffer.read_position() == check.begin) {
    c.extractor.checked(check.begin + in.validation->valid_octets());
  }
  while (at < check.new_end && c.tcb.rcv.holes.next_missing(at, check.new_end, &from, &to)) {
    const bool in_order = from == c.tcb.rcv.holes.rcv_nxt();
    const ByteView bytes = in.seg.payload.subspan(from - check.begin, to - from);
    if (c.tcb.rcv.holes.exceeds_limit(from, to) || !c.buffer.store(from, bytes, in_order)) {
      // Out-of-order data is refused first when memory is short (E-11).
      if (!stored) act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
      break;
    }
    stored = true;
    if (slow_data) {
      c.counters.bytes_copied += bytes.size();
      c.counters.bytes_slow += bytes.size();
    }
    commit_range(c, from, to, check.fin && to == check.end,
                 in.seg.has(tcp::kPsh) && to == check.end, {}, now);
    if (c.is_over()) return;
    at = to;
  }
  if (slow_data && !c.in_drain_queue) drain_reassembly(c, kDrainTurn, now);
  c.extractor.checked(StreamOffset(0));
}

// Whole FPDUs out of the in-order octets, placed and delivered one by one.
std::uint64_t Engine::drain_reassembly(Connection& c, std::uint64_t budget, Instant now) {
  std::uint64_t parsed = 0;
  while (c.takes_fpdus()) {
    if (c.buffer.empty()) {
      // what TCP calls received is stored here or has been read.
      assert(c.buffer.read_position() == c.tcb.rcv.holes.rcv_nxt());
      c.extractor.run_dry();
      break;
    }
    if (parsed >= budget && c.buffer.read_position() < c.tcb.rcv.holes.rcv_nxt()) {
      draining_.push(c);
      return parsed;
    }
    ByteView ulpdu;
    std::uint32_t length = 0;
    const auto got = c.extractor.next(c.buffer, c.tcb.rcv.holes.rcv_nxt(), &ulpdu, &length);
    if (got == reassembly::Extracted::NeedMore) {
      // Kept on a detour (E-41), and no whole FPDU.
      if (c.context.type == fastpath::ConnectionType::Fast &&
          c.buffer.read_position() < c.tcb.rcv.holes.rcv_nxt()) {
        abandon_detour(c, now);
      }
      break;
    }
    if (got ==
        reassembly::Extracted::BadCrc) {  // already acknowledged: TCP cannot repair it
      if (c.context.type == fastpath::ConnectionType::Fast) abandon_detour(c, now);
      raise_terminate(c, ddp::Violation::MpaCrc, {}, now);
      break;
    }
    if (got == reassembly::Extracted::BadMarker) {  // RFC 5044, 8
      raise_terminate(c, ddp::Violation::MpaMarker, {}, now);
      break;
    }
    const StreamOffset behind = c.buffer.read_position() + length;
    if (!take_fpdu(c, ulpdu, now)) break;
    c.buffer.consume(behind);
    parsed += length;
  }
  if (!c.is_over()) finish_drain(c, now);
  return parsed;
}

// No whole FPDU is left.
void Engine::finish_drain(Connection& c, Instant now) {
  if (c.stage == Stage::Terminated) {
    c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
  } else {
    if (c.residue && c.buffer.empty()) {  // E-1: start-up residue is gone, as initiated from here
      c.residue = false;
      c.context.type = c.context.config.initiated_as;
    }
    update_receive_room(c, now);
  }
  if (!c.fin_waits || c.is_over()) return;
  c.fin_waits = false;
  on_fin(c, now);
}

// SLOW connections that have more than one turn's worth, one after the other.
void Engine::drain_round(Instant now) {
  std::uint64_t left = kDrainRound;
  while (left != 0 && !draining_.empty()) {
    Connection* c = draining_.pop(connections_);
    if (c == nullptr) continue;
    if (c->stream == nullptr || c->stage < Stage::Full || c->stage > Stage::Closing) continue;
    left -= std::min(left, drain_reassembly(*c, std::min(left, kDrainTurn), now));
    if (c->is_over()) continue;
    touched_.push(*c);
    const bool over = c->tcb.state == tcp::State::Closed || c->tcb.state == tcp::State::TimeWait;
    if (over && !c->in_drain_queue) on_closed(*c, now);
  }
}

// One FPDU of the in-order stream: placed and delivered. False when that was the end.
bool Engine::take_fpdu(Connection& c, ByteView ulpdu, Instant now) {
  ddp::Admission& a = scratch_.admissions[0];
  ddp::Admitter(*c.stream, true).next(ulpdu, &a);
  if (a.what == ddp::Admit::NoReceive) {  // the conventional rule
    raise_terminate(c, ddp::Violation::UntaggedNoBuffer, ulpdu, now);
    return false;
  }
  if (a.what == ddp::Admit::Violate) {
    raise_terminate(c, a.violation, ulpdu, now);
    return false;
  }
  ddp::MessageCounts counts;
  ddp::place(*c.stream, a, &counts);
  note_placed(c, a);
  if (counts.any()) deliver(c, counts, now);
  if (!c.is_over() && !c.first_fpdu_seen) first_fpdu(c, now);
  return !c.is_over() && c.stage != Stage::Terminated;
}

}  // namespace urnic::engine
