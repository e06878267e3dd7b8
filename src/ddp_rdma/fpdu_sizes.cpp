#include "ddp_rdma/fpdu_sizes.h"

#include <algorithm>

namespace urnic::ddp {

bool FpduSizes::fit(StreamOffset at, bool tagged, std::uint32_t remaining, bool fresh,
                    const Room& room, std::uint32_t* payload) const {
  const std::uint32_t header = header_of(tagged);
  *payload = std::min(remaining, most(tagged));
  if (of(at, header + *payload) <= room.bytes) return true;
  // After other FPDUs, a message begins only with an FPDU of full size or as a whole. A shorter one
  // would add an FPDU and save nothing, unless pack_partial requests it. A smaller MULPDU is
  // allowed down to 128 (RFC 5044, 5.1) and keeps the alignment.
  const bool shrink = room.first ? room.must_cut : fresh && pack_partial_;
  if (shrink && room.bytes >= estimate(mpa::kMinMulpdu)) {
    *payload = std::min(remaining, mpa::framed_mulpdu(framing_.policy, room.bytes) - header);
    return true;
  }
  return room.first && room.must_cut;
}

}  // namespace urnic::ddp
