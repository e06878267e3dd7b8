// CRC-32 of Ethernet (IEEE 802.3; reflected, as zlib computes it), the ICRC of RoCEv2.
//
// Values are the usual 32-bit number (init 0xffffffff, final xor 0xffffffff, reflected); the ICRC
// is stored least significant byte first: store_le32.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace urnic {

// Running form: start with kCrc32Init, feed pieces of any length, finish with crc32_finish. Intel
// ISA-L's crc32_gzip_refl. Thread safe.
inline constexpr std::uint32_t kCrc32Init = 0xffffffffu;
std::uint32_t crc32_update(std::uint32_t state, ByteView bytes);
constexpr std::uint32_t crc32_finish(std::uint32_t state) {
  return ~state;
}
inline std::uint32_t crc32(ByteView bytes) {
  return crc32_finish(crc32_update(kCrc32Init, bytes));
}

// Bit by bit: the reference the other is tested against.
std::uint32_t crc32_update_portable(std::uint32_t state, ByteView bytes);

}  // namespace urnic
