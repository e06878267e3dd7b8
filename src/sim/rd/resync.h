// RESYNC of RD: a sender that gives a message up announces the PSN after all PSNs that the message
// has used, so that both ends agree on the next one. The peer discards what it received of the
// message.
//
// Pure; any thread.
#pragma once

#include <cstdint>

#include "ib/packet.h"
#include "sim/rd/ee_context.h"

namespace urnic::sim {

// The PSN of the RESYNC for a message that began with `first` and has used `used` PSNs, including
// those of expected READ responses: one after the highest (o9-35.a1, IB-174).
constexpr ib::Psn resync_psn(ib::Psn first, std::uint32_t used) {
  return first + used;
}

// Uses the queue pairs of that message, and its Q_Key (o9-35.a2).
inline ib::PacketHeader resync_header(const EeAttributes& ee, ib::Psn psn, std::uint32_t dest_qp,
                                      const ib::Deth& deth) {
  ib::PacketHeader h;
  h.bth.opcode = ib::Opcode(ib::ServiceType::Rd, ib::Operation::Resync);
  h.bth.pkey = ee.pkey;
  h.bth.dest_qp = dest_qp;
  h.bth.psn = psn;
  h.bth.ack_request = true;
  h.ee_context = ee.dest_ee;
  h.deth = deth;
  return h;
}

// How a responder classifies a RESYNC (o9-38.a2, IB-175). If its PSN is before the expected one, it
// is a repetition and is only answered; otherwise it sets the expected PSN.
enum class ResyncIs : std::uint8_t { Again, New };
constexpr ResyncIs judge_resync(ib::Psn psn, ib::Psn expected) {
  return region(psn, expected) == ib::PsnRegion::Duplicate ? ResyncIs::Again : ResyncIs::New;
}
constexpr ib::Psn expected_behind(ib::Psn resync) {
  return resync + 1;
}

}  // namespace urnic::sim
