// CRC32C (Castagnoli; RFC 3720 B.4), the CRC of MPA (RFC 5044, 4.4).
//
// Values are the usual 32-bit number (init 0xffffffff, final xor 0xffffffff, reflected). On the
// wire it is stored least significant byte first: store_le32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace urnic {

// CRC32C of `bytes`, by the fastest implementation for this CPU. Thread safe.
std::uint32_t crc32c(ByteView bytes);

// Incremental use: start with kCrc32cInit, add pieces of any length, end with crc32c_finish.
inline constexpr std::uint32_t kCrc32cInit = 0xffffffffu;
std::uint32_t crc32c_update(std::uint32_t state, ByteView bytes);
constexpr std::uint32_t crc32c_finish(std::uint32_t state) {
  return ~state;
}

// Table-driven reference; the other implementations are tested against it.
std::uint32_t crc32c_update_portable(std::uint32_t state, ByteView bytes);
// Intel ISA-L's crc32_iscsi: the baseline of measurement P1 and the fallback.
std::uint32_t crc32c_update_isal(std::uint32_t state, ByteView bytes);

}  // namespace urnic
