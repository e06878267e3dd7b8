// The CRC-32 of Ethernet (IEEE 802.3; reflected, as in zlib), used as the ICRC of RoCEv2.
//
// Values are the usual 32-bit number (init 0xffffffff, final xor 0xffffffff, reflected). The ICRC
// is stored least significant byte first: store_le32.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"

namespace urnic {

// Incremental use: start with kCrc32Init, add pieces of any length, end with crc32_finish. Uses the
// fastest kernel of this CPU. Thread safe.
inline constexpr std::uint32_t kCrc32Init = 0xffffffffu;
std::uint32_t crc32_update(std::uint32_t state, ByteView bytes);
constexpr std::uint32_t crc32_finish(std::uint32_t state) {
  return ~state;
}
inline std::uint32_t crc32(ByteView bytes) {
  return crc32_finish(crc32_update(kCrc32Init, bytes));
}

// Bits in the first bytes that are replaced by ones: the fields that routers may change.
struct Crc32Mask {
  static constexpr std::size_t kMost = 64;
  // Followed by zeros, so that any remaining part of the mask can be loaded as a full block.
  alignas(64) std::array<std::uint8_t, 2 * kMost> ones{};
};
// The same, with the bits of the mask counted as ones; the bytes are not changed.
std::uint32_t crc32_update_masked(std::uint32_t state, ByteView bytes, const Crc32Mask& mask);
// Copies `bytes` to `dst`, which must not overlap, and adds them to the CRC. Reads each byte once.
std::uint32_t crc32_update_copy(std::uint32_t state, std::uint8_t* dst, ByteView bytes);

// For a multiple of four bytes, read four at a time. Use it for a few bytes that have just been
// written: a load wider than the preceding stores must wait until those stores have left the core,
// including stores of the previous packet.
std::uint32_t crc32_update_words(std::uint32_t state, ByteView bytes);

// Intel ISA-L's crc32_gzip_refl.
std::uint32_t crc32_update_isal(std::uint32_t state, ByteView bytes);
// Bit by bit: the reference for tests of the others.
std::uint32_t crc32_update_portable(std::uint32_t state, ByteView bytes);

}  // namespace urnic
