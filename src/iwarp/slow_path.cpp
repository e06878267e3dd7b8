#include "iwarp/slow_path.h"

#include <cassert>

namespace urnic::iwarp {

// FPDUs that the validation unit found valid are not checked again when they are extracted (E-20).
void SlowPath::store(Connection& c, const InHand& in, Instant now, Found* found) {
  const tcp::Check& check = in.check;
  const bool slow_data = c.stage != Stage::Opening && c.stage != Stage::Startup;
  if (check.arrival == tcp::Arrival::Overlap) tcp::note_duplicate_part(c.tcb, check);
  StreamOffset at = check.new_begin, from, to;
  bool stored = false;
  const bool at_frame = in.validation != nullptr && check.arrival == tcp::Arrival::InOrder &&
                        c.buffer.empty() && c.buffer.read_position() == check.begin;
  while (at < check.new_end && c.tcb.rcv.holes.next_missing(at, check.new_end, &from, &to)) {
    const bool in_order = from == c.tcb.rcv.holes.rcv_nxt();
    const ByteView bytes = in.seg.payload.subspan(from - check.begin, to - from);
    if (c.tcb.rcv.holes.exceeds_limit(from, to) || !c.buffer.store(from, bytes, in_order)) {
      // Out-of-order data is refused first when memory is short (E-11).
      if (!stored) rx_commit_.act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
      break;
    }
    stored = true;
    if (at_frame) c.extractor.checked(check.begin + in.validation->valid_bytes());
    if (slow_data) {
      c.counters.bytes_copied += bytes.size();
      c.counters.bytes_slow += bytes.size();
    }
    rx_commit_.commit_range(c, from, to, check.fin && to == check.end,
                            in.seg.has(tcp::kPsh) && to == check.end, {}, now, found);
    at = to;
  }
  if (slow_data && !c.in_drain_queue) drain(c, kDrainTurn, now, found);
}

// No whole FPDU is left.
inline void SlowPath::finish_drain(Connection& c, Instant now, Found* found) {
  if (!found->ends_stream()) {
    if (c.residue && c.buffer.empty()) {  // E-1: the rest of the start-up is parsed, so the type is
                                          // as initiated from here
      c.residue = false;
      c.context.type = c.context.config.initiated_as;
    }
    rx_commit_.update_receive_room(c, now);
  }
  RxCommit::report_fin(c, found);
}

void SlowPath::take_fin(Connection& c, StreamOffset at, Instant now, Found* found) {
  rx_commit_.commit_range(c, at, at, true, false, {}, now, found);
  if (c.peer_fin == PeerFin::AfterData && !c.in_drain_queue) drain(c, kDrainTurn, now, found);
}

std::uint64_t SlowPath::drain(Connection& c, std::uint64_t budget, Instant now, Found* found) {
  std::uint64_t parsed = 0;
  if (c.awaits_receive()) return parsed;
  while (c.takes_fpdus() && !found->ends_stream()) {
    if (c.buffer.empty()) {
      // all bytes that TCP has received are stored here or have been read.
      assert(c.buffer.read_position() == c.tcb.rcv.holes.rcv_nxt());
      c.extractor.run_dry();
      break;
    }
    if (parsed >= budget && c.buffer.read_position() < c.tcb.rcv.holes.rcv_nxt()) {
      s_.draining.push(c);
      return parsed;
    }
    ByteView ulpdu;
    std::uint32_t length = 0;
    const auto got = c.extractor.next(c.buffer, c.tcb.rcv.holes.rcv_nxt(), &ulpdu, &length);
    if (got == reassembly::Extracted::NeedMore) {
      // Kept on a detour (E-41), but not a whole FPDU.
      if (c.context.type == fastpath::ConnectionType::Fast &&
          c.buffer.read_position() < c.tcb.rcv.holes.rcv_nxt()) {
        abandon_detour(c, now);
      }
      break;
    }
    if (got ==
        reassembly::Extracted::BadCrc) {  // already acknowledged: TCP cannot repair it
      if (c.context.type == fastpath::ConnectionType::Fast) abandon_detour(c, now);
      found->violate(ddp::Violation::MpaCrc);
      break;
    }
    if (got == reassembly::Extracted::BadMarker) {  // RFC 5044, 8
      found->violate(ddp::Violation::MpaMarker);
      break;
    }
    const StreamOffset behind = c.buffer.read_position() + length;
    if (!rx_commit_.take_fpdu(c, ulpdu, found)) break;
    c.buffer.consume(behind);
    parsed += length;
  }
  if (c.awaits_receive()) {
    rx_commit_.begin_wait(c, now);
  } else {
    finish_drain(c, now, found);
  }
  return parsed;
}

// Fig 5: data placed out of order is only in the consumer's memory, so TCP forgets it first (R-45,
// Data kept on a detour is in the buffer, and stays there (E-41).
void SlowPath::downgrade(Connection& c, fastpath::Reason why) {
  ++c.counters.downgrades;
  note(s_, c, Note::Downgraded, why);
  if (!c.buffer.empty()) return;
  tcp::forget_out_of_order(c.tcb);
  c.hole_counters.discard();
  if (c.stream != nullptr) c.stream->forget_out_of_order();
  c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
}

// The in-order bytes end inside an FPDU: a kept segment began where no FPDU begins. The bytes were
// acknowledged and stay in the buffer; the connection continues as SLOW.
void SlowPath::abandon_detour(Connection& c, Instant now) {
  constexpr auto kWhy = fastpath::Reason::Seam;
  ++c.counters.reasons[static_cast<std::size_t>(kWhy)];
  fastpath::become_slow(c.context, kWhy, now);
  downgrade(c, kWhy);
}

}  // namespace urnic::iwarp
