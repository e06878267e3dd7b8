// Builds one FPDU straight into the port's buffer: length field, DDP header, payload gathered from
// registered memory, pad, CRC; copy, CRC32C and Internet checksum in one pass (D5, E-20).
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

// `header` is the DDP/RDMAP header; `payload` its pieces in order, whose lengths add up so that
// header + payload <= kMaxUlpdu. With `crc` false the CRC field is zero. `dst` has room for the
// FPDU. Pieces may have any length and alignment; each is read exactly once.
Built build_fpdu(std::uint8_t* dst, ByteView header, std::span<const ByteView> payload, bool crc);

// The same as it must look at `pos` under `policy`: markers put in as the bytes are copied, the
// length field as the policy says it. With NoMarkers it is build_fpdu. `dst` has framed_size()
// bytes. Nothing is written (len 0) when the FPDU could not be said: longer than kMaxUlpdu, or
// with markers longer than kMaxModifiedFrame, beyond which no marker could point back.
Built build_framed(std::uint8_t* dst, Policy policy, std::uint32_t pos, ByteView header,
                   std::span<const ByteView> payload, bool crc);

}  // namespace urnic::mpa
