#include "sim/packet_watch.h"

#include <vector>

#include "fault/roce_frame.h"
#include "ib/packet.h"

namespace urnic::sim {

void PacketWatch::see(const urnic_frame& frame) {
  std::vector<std::uint8_t> whole(frame.data[0], frame.data[0] + frame.len[0]);
  whole.insert(whole.end(), frame.data[1], frame.data[1] + frame.len[1]);
  const auto c = net::classify(whole, static_cast<std::uint32_t>(whole.size()));
  const auto view = fault::view_roce(c, whole);
  if (!view || view->management()) return;
  const auto packet = ib::parse_packet(ByteView(whole).subspan(view->bth, view->bytes));
  if (!packet) return;
  const ib::PacketHeader& h = packet->header;
  counts.payload += packet->payload.size();
  if (!h.row().response()) {
    ++counts.requests;
    counts.read_requests += h.row().family == ib::Family::Read ? 1 : 0;
    counts.atomics += h.row().family == ib::Family::Atomic ? 1 : 0;
    return;
  }
  ++counts.responses;
  const bool says =
      h.row().family == ib::Family::Acknowledge || h.row().family == ib::Family::AtomicAcknowledge;
  if (!says) return;
  switch (h.aeth.syndrome.kind()) {
    case ib::AckKind::Ack:
      ++counts.acks;
      counts.acks_with_credits += h.aeth.syndrome.value() != ib::kNoCredits ? 1 : 0;
      if (nak_open_ && !h.bth.psn.before(nak_)) nak_open_ = false;
      return;
    case ib::AckKind::RnrNak:
      ++counts.rnr_naks;
      return;
    case ib::AckKind::Reserved:
      return;
    case ib::AckKind::Nak:
      break;
  }
  if (h.aeth.syndrome.code() != ib::NakCode::SequenceError) {
    ++counts.fatal_naks;
    return;
  }
  ++counts.sequence_naks;
  counts.naks_told_twice += nak_open_ && nak_ == h.bth.psn ? 1 : 0;
  nak_open_ = true;
  nak_ = h.bth.psn;
}

}  // namespace urnic::sim
