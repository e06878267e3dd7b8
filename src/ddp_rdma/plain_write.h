// The FPDU that bulk data consists of: a Write whose destination is in order. Admitted and placed
// in line, by the same two steps as everything else (D2, E-5); what is not of that kind, refusals
// included, is left to Admitter and place().
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ddp_rdma/header.h"
#include "ddp_rdma/once.h"
#include "ddp_rdma/stream.h"

namespace urnic::ddp {

// The two control bytes of a ULPDU, DDP's first, read once (E-19); 0 when it has none.
inline std::uint32_t control_of(ByteView ulpdu) {
  return ulpdu.size() >= kTaggedHeader ? once<std::uint32_t>(load_be16(ulpdu.data())) : 0;
}
// Told by them (reserved bits are not looked at).
inline bool is_write(std::uint32_t control) {
  return (control & 0x83cf) == 0x8140;
}
inline bool is_last(std::uint32_t control) {
  return (control & 0x4000) != 0;
}

struct PlainWrite {
  ByteView payload;      // not empty
  std::uint8_t* to;      // where it goes
  std::uint64_t behind;  // bytes of the region behind that
};

// Admitter::next() of a Write with payload that may be placed: pure. False for everything else;
// then an Admitter has to be asked.
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

// place() of it. Ends no message anybody hears of. False when its memory has gone.
[[nodiscard]] bool place_plain_write(const PlainWrite& write);

}  // namespace urnic::ddp
