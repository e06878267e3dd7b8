// The parts of the receive path that differ on a stream with markers: validation by the grid or by
// the modified length, the case of a header whose CRC is wrong, and ULPDUs without their markers.
#include "iwarp/receiver.h"

namespace urnic::iwarp {
namespace {

// Position of a segment in the marker grid. It is computed from the sequence number, so that it is
// known before TCP has checked the segment. With the absolute grid nothing else is needed.
std::uint32_t grid_position(const Connection& c, const tcp::Segment& seg) {
  if (c.framing.policy == mpa::Policy::AbsoluteMarkers) return seg.seq.value();
  return c.framing.pos(seg.seq.value() - c.tcb.rcv.irs.value() - 1);
}

}  // namespace

// The context was found before (E1, R-73) and is only read, since the checksum is not verified yet.
void Receiver::validate_framed(const Connection& c, const tcp::Segment& seg) {
  if (c.framing.policy == mpa::Policy::ModifiedLength) {
    fastpath::validate_modified(seg.payload, scratch_.validation);
  } else {
    fastpath::validate_marked(seg.payload, grid_position(c, seg), scratch_.validation);
  }
}

void judge_markers(const Connection& c, const InHand& in) {
  fastpath::check_markers(c.framing.policy, in.seg.payload, grid_position(c, in.seg),
                          *in.validation);
}

// S8, S10: known frame ends are RCV.NXT and the right edges of blocks placed while FAST. A
// downgrade forgets the blocks, and an upgrade needs an empty buffer, so a FAST connection has no
// others (I-1).
fastpath::HeaderCase header_case(const Connection& c, const InHand& in) {
  return fastpath::header_case(c.tcb.rcv.holes.is_received_edge(in.check.begin), in.seg.payload,
                               grid_position(c, in.seg), *in.validation);
}

// Copies the ULPDU of a frame of the segment to the internal data buffer; valid until the next
// segment. Returns false if memory shared with the peer has changed since the frame was validated
// (E-19).
bool Receiver::strip_markers(Connection& c, const InHand& in, const fastpath::FrameResult& frame,
                             ByteView* ulpdu) {
  std::vector<std::uint8_t>& room = scratch_.internal;
  if (room.size() < in.seg.payload.size()) room.resize(in.seg.payload.size());
  std::uint8_t* const to = room.data() + frame.offset;
  const auto n =
      mpa::strip_framed(c.framing.policy, in.seg.payload.subspan(frame.offset, frame.length),
                        grid_position(c, in.seg) + frame.offset, to);
  if (!n) return false;
  c.counters.bytes_copied += *n;
  *ulpdu = ByteView(to, *n);
  return true;
}

}  // namespace urnic::iwarp
