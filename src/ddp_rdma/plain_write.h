// The fast path for the FPDUs of bulk data: a Write whose destination is valid. It is admitted and
// placed inline, by the same two steps as all other FPDUs (D2, E-5). Other FPDUs, and all
// violations, are left to Admitter and place().
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ddp_rdma/header.h"
#include "ddp_rdma/once.h"
#include "ddp_rdma/stream.h"

namespace urnic::ddp {

// The two control bytes of a ULPDU, DDP's first, read once (E-19); 0 if it is too short.
inline std::uint32_t control_of(ByteView ulpdu) {
  return ulpdu.size() >= kTaggedHeader ? once<std::uint32_t>(load_be16(ulpdu.data())) : 0;
}
// Both test the control bytes (reserved bits are ignored).
inline bool is_write(std::uint32_t control) {
  return (control & 0x83cf) == 0x8140;
}
inline bool is_last(std::uint32_t control) {
  return (control & 0x4000) != 0;
}

struct PlainWrite {
  ByteView payload;      // not empty
  std::uint8_t* to;      // destination
  std::uint64_t behind;  // bytes of the region after that destination
};

// Same as Admitter::next() for a Write with payload that may be placed; changes nothing. Returns
// false for everything else, and then an Admitter must decide.
inline bool admit_plain_write(const Stream& s, ByteView ulpdu, PlainWrite* out) {
  if (!is_write(control_of(ulpdu)) || ulpdu.size() == kTaggedHeader) return false;
  const std::uint32_t stag = once(load_be32(ulpdu.data() + 2));
  const std::uint64_t to = once(load_be64(ulpdu.data() + 6));
  const std::uint64_t len = ulpdu.size() - kTaggedHeader;
  const Region* r = s.memory->find(stag);
  if (r == nullptr || !s.allows(verbs::kRemoteWrite) ||
      !r->may_write({s.config.pd, s.config.id}, to, len)) {
    return false;
  }
  const std::uint64_t offset = to - r->address;
  out->payload = ulpdu.subspan(kTaggedHeader);
  out->to = r->base + offset;
  out->behind = r->length - offset - len;
  return true;
}

// Same as place() for such a Write. It ends no message that is delivered. Returns false if its
// memory is gone.
[[nodiscard]] bool place_plain_write(const PlainWrite& write);

}  // namespace urnic::ddp
