// FPDU geometry without markers (RFC 5044, 4.1) and views of its parts.
//
//   2 ULPDU_Length | n ULPDU | 0-3 pad | 4 CRC32C (least significant byte first)
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace urnic::mpa {

inline constexpr std::uint32_t kLengthField = 2;
inline constexpr std::uint32_t kCrcField = 4;
inline constexpr std::uint32_t kMaxUlpdu = 65535;
// The smallest MULPDU of a sender. Below it, FPDUs are no longer aligned with segments (RFC 5044,
// 4.5).
inline constexpr std::uint32_t kMinMulpdu = 128;

constexpr std::uint32_t pad_of(std::uint32_t ulpdu) {
  return (4 - ((kLengthField + ulpdu) & 3)) & 3;
}
// Stream bytes of an FPDU with a ULPDU of `ulpdu` bytes: always a multiple of 4.
constexpr std::uint32_t fpdu_size(std::uint32_t ulpdu) {
  return kLengthField + ulpdu + pad_of(ulpdu) + kCrcField;
}
// Largest ULPDU whose FPDU fits `emss` bytes: EMSS - (6 + EMSS mod 4); never below kMinMulpdu.
constexpr std::uint32_t mulpdu(std::uint32_t emss) {
  const std::uint32_t overhead = 6 + emss % 4;
  const std::uint32_t fit = emss > overhead ? emss - overhead : 0;
  return fit < kMinMulpdu ? kMinMulpdu : (fit > kMaxUlpdu ? kMaxUlpdu : fit);
}

// The ULPDU of a complete FPDU. The caller has checked that the length field fits `fpdu`.
inline ByteView ulpdu_of(ByteView fpdu) {
  return fpdu.subspan(kLengthField, load_be16(fpdu.data()));
}

// The CRC field of a complete FPDU.
inline std::uint32_t crc_of(ByteView fpdu) {
  return load_le32(fpdu.data() + fpdu.size() - kCrcField);
}

}  // namespace urnic::mpa
