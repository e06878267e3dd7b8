// Builds one FPDU directly in the port's buffer: length field, DDP header, payload gathered from
// registered memory, pad, CRC. Copies, and computes CRC32C and Internet checksum, in one pass (D5,
// E-20).
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "mpa/framing.h"

namespace urnic::mpa {

struct Built {
  std::uint32_t len = 0;  // bytes written: fpdu_size(header + payload)
  std::uint32_t sum = 0;  // unfolded Internet sum of those bytes (they start at an even offset)
};

// `header` is the DDP/RDMAP header. `payload` holds its pieces in order; header + payload must not
// exceed kMaxUlpdu. If `crc` is false the CRC field is zero. `dst` must have room for the FPDU.
// Pieces may have any length and alignment; each byte is read exactly once.
Built build_fpdu(std::uint8_t* dst, ByteView header, std::span<const ByteView> payload, bool crc);

// The same, with the length field already at the front of `head`. The head is at most 64 bytes.
Built build_fpdu_of(std::uint8_t* dst, ByteView head, std::span<const ByteView> payload, bool crc);

// Builds the same FPDU as it must look at `pos` under `policy`: inserts markers while copying, and
// writes the length field as the policy requires. With NoMarkers it equals build_fpdu(). `dst` must
// have framed_size() bytes. Writes nothing (len 0) if the FPDU cannot be represented: longer than
// kMaxUlpdu, or with markers longer than kMaxModifiedFrame, since markers beyond that could not
// point back.
Built build_framed(std::uint8_t* dst, Policy policy, std::uint32_t pos, ByteView header,
                   std::span<const ByteView> payload, bool crc);

}  // namespace urnic::mpa
