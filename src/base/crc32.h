// CRC-32 of Ethernet (IEEE 802.3; reflected, as zlib computes it), the ICRC of RoCEv2.
//
// Values are the usual 32-bit number (init 0xffffffff, final xor 0xffffffff, reflected); the ICRC
// is stored least significant byte first: store_le32.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"

namespace urnic {

// Running form: start with kCrc32Init, feed pieces of any length, finish with crc32_finish. By the
// fastest kernel of this CPU. Thread safe.
inline constexpr std::uint32_t kCrc32Init = 0xffffffffu;
std::uint32_t crc32_update(std::uint32_t state, ByteView bytes);
constexpr std::uint32_t crc32_finish(std::uint32_t state) {
  return ~state;
}
inline std::uint32_t crc32(ByteView bytes) {
  return crc32_finish(crc32_update(kCrc32Init, bytes));
}

// Bits that count as ones wherever they are in the first bytes: what routers may change.
struct Crc32Mask {
  static constexpr std::size_t kMost = 64;
  // Behind them zeros, for who loads the part of a mask that is left.
  alignas(64) std::array<std::uint8_t, 2 * kMost> ones{};
};
// The same with the ones of a mask; the bytes stay as they are.
std::uint32_t crc32_update_masked(std::uint32_t state, ByteView bytes, const Crc32Mask& mask);
// Copies `bytes` to `dst`, which does not overlap, and goes on with them. Each byte is read once.
std::uint32_t crc32_update_copy(std::uint32_t state, std::uint8_t* dst, ByteView bytes);

// A multiple of four bytes, read four at a time. For a few that have just been written: a load
// that is wider than the stores before it waits until all of them have left the core, also those of
// the packet before.
std::uint32_t crc32_update_words(std::uint32_t state, ByteView bytes);

// Intel ISA-L's crc32_gzip_refl.
std::uint32_t crc32_update_isal(std::uint32_t state, ByteView bytes);
// Bit by bit: the reference the others are tested against.
std::uint32_t crc32_update_portable(std::uint32_t state, ByteView bytes);

}  // namespace urnic
