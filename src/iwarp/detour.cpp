// The detour of a FAST connection that places nothing out of order (E-41, E-12 `store`). Data
// beyond a gap is kept in the reassembly buffer and acknowledged by SACK, and placed when it is in
// order. The detour lasts while the buffer holds data; then some earlier byte is missing, and
// in-order data is cut through as usual. Every kept byte came in a segment with correct CRCs, so no
// error that TCP could repair is found too late.

#include <algorithm>

#include "iwarp/receiver.h"
#include "iwarp/rx_frames.h"

namespace urnic::iwarp {

// Keeps a segment of whole valid FPDUs that begin beyond RCV.NXT.
void Receiver::keep(Connection& c, const InHand& in, Instant now, Found* found) {
  const tcp::Check& check = in.check;
  fastpath::Validation& v = *in.validation;
  const auto& frames = v.frames;
  const std::size_t inside = frames_inside(v, check);
  // A segment that could not be placed is refused while the peer still has it (R-114, E-6).
  const FastResult admitted = inside == 0 ? FastResult::Refused : admit_to_keep(c, in, inside);
  if (admitted != FastResult::Taken) return refuse_fast(c, admitted, check, now);

  const StreamOffset end = check.begin + frames[inside - 1].offset + frames[inside - 1].length;
  const bool opens = c.buffer.empty();
  if (opens) c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
  if (check.arrival == tcp::Arrival::Overlap) tcp::note_duplicate_part(c.tcb, check);
  StreamOffset at = check.new_begin, from, to;
  bool stored = false;
  while (c.tcb.rcv.holes.next_missing(at, end, &from, &to)) {
    const ByteView bytes = in.seg.payload.subspan(from - check.begin, to - from);
    if (c.tcb.rcv.holes.exceeds_limit(from, to) || !c.buffer.store(from, bytes, false)) {
      // Full (E-10, E-11): TCP refuses it, and the sender resends it.
      if (!stored) rx_commit_.act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
      return;
    }
    if (opens && !stored) ++c.counters.detours;
    stored = true;
    c.counters.bytes_copied += bytes.size();
    c.counters.bytes_detour += bytes.size();
    rx_commit_.commit_range(c, from, to, check.fin && to == check.end, in.seg.has(tcp::kPsh), {},
                            now, found);
    at = to;
  }
}

// Checks that every FPDU may be placed, as far as that can be checked out of order (E-5). From now
// on the receives for its Sends are reserved (E-15), so that acknowledged data finds them.
Receiver::FastResult Receiver::admit_to_keep(Connection& c, const InHand& in, std::size_t frames) {
  fastpath::Validation& v = *in.validation;
  ddp::Admitter admitter(*c.stream, false);
  if (scratch_.admissions.size() < frames) scratch_.admissions.resize(frames);
  for (std::size_t i = 0; i < frames; ++i) {
    ByteView ulpdu;
    if (!ulpdu_of(c, in, v.frames[i], &ulpdu)) return FastResult::Refused;
    ddp::Admission& a = scratch_.admissions[i];
    admitter.next(ulpdu, &a);
    if (a.what == ddp::Admit::NoReceive) {
      c.starved_msn = a.segment.header.msn;
      return FastResult::NoReceive;
    }
    if (a.what != ddp::Admit::Place) return FastResult::Refused;
  }
  for (std::size_t i = 0; i < frames; ++i) {
    const ddp::SegmentHeader& h = scratch_.admissions[i].segment.header;
    if (ddp::uses_receive(h.op)) c.stream->rq.claim(h.msn);
  }
  return FastResult::Taken;
}

// Commits the parts of [begin, end), which begins at RCV.NXT and was placed, that TCP does not have
// yet. The messages end with the last part. Returns the number of new bytes.
std::uint64_t Receiver::commit_around_kept(Connection& c, StreamOffset begin, StreamOffset end,
                                           bool fin, bool psh, const ddp::MessageCounts& counts,
                                           Instant now, Found* found) {
  std::uint64_t bytes = 0;
  StreamOffset from, to;
  while (c.tcb.rcv.holes.next_missing(begin, end, &from, &to)) {
    StreamOffset next_from, next_to;
    const bool last = !c.tcb.rcv.holes.next_missing(to, end, &next_from, &next_to);
    bytes += to - from;
    rx_commit_.commit_range(c, from, to, fin && to == end, psh,
                            last ? counts : ddp::MessageCounts{}, now, found);
    begin = to;
  }
  return bytes;
}

// All data below `placed_to` was placed, and RCV.NXT has reached or passed it. Processes kept data
// that is in order now.
void Receiver::take_kept(Connection& c, StreamOffset placed_to, Instant now, Found* found) {
  c.buffer.consume(placed_to);
  slow_.drain(c, kNoBudget, now, found);
}

}  // namespace urnic::iwarp
