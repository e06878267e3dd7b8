// RESYNC of RD: whoever has given a message up says so, with the PSN behind everything that the
// message has used, so that both ends agree on the next one; the peer forgets what came of it.
//
// Pure; any thread.
#pragma once

#include <cstdint>

#include "ib/packet.h"
#include "sim/rd/ee_context.h"

namespace urnic::sim {

// The PSN of the RESYNC for a message that began with `first` and has used `used` PSNs, those of
// responses that a READ expects included: one behind the highest (o9-35.a1, IB-174).
constexpr ib::Psn resync_psn(ib::Psn first, std::uint32_t used) {
  return first + used;
}

// Of the queue pairs of that message, whose Q_Key it has (o9-35.a2).
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

// What a responder makes of one (o9-38.a2, IB-175): before what it expects it has come before, and
// is answered, no more; else it says what is expected now.
enum class ResyncIs : std::uint8_t { Again, New };
constexpr ResyncIs judge_resync(ib::Psn psn, ib::Psn expected) {
  return region(psn, expected) == ib::PsnRegion::Duplicate ? ResyncIs::Again : ResyncIs::New;
}
constexpr ib::Psn expected_behind(ib::Psn resync) {
  return resync + 1;
}

}  // namespace urnic::sim
