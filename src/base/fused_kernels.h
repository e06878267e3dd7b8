// The kernels of fused.h and crc32c.h, one set per instruction set. Only for base/ itself.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/fused.h"
#include "base/inet_checksum.h"

namespace urnic {

struct FusedKernelSet {
  std::string_view name;
  FusedSums (*crc_sum)(ByteView, std::uint32_t);
  FusedSums (*copy_crc_sum)(std::uint8_t*, ByteView, std::uint32_t);
  std::uint32_t (*crc)(std::uint32_t, ByteView);       // running CRC only
  std::uint32_t (*copy_sum)(std::uint8_t*, ByteView);  // copy and checksum only
  std::uint32_t (*sum)(ByteView);                      // checksum only
};

// Call only kernels that cpu_features() permits.
extern const FusedKernelSet kFusedPortable;
extern const FusedKernelSet kFusedSse42;
extern const FusedKernelSet kFusedAvx2;
extern const FusedKernelSet kFusedAvx512;
extern const FusedKernelSet kFusedVpclmul;
extern const FusedKernelSet kFusedArm64;

// The fastest set of this CPU.
const FusedKernelSet& fused_best();

namespace fused_detail {

// Converts the sum of little-endian words into the 16-bit sum of big-endian words (RFC 1071, 2(B):
// only the byte order of the sum differs). Adding a number to itself with swapped halves leaves the
// one's-complement sum of the halves in the upper half.
constexpr std::uint32_t to_network_sum(std::uint64_t little_endian_sum) {
  const auto s32 =
      static_cast<std::uint32_t>((little_endian_sum + std::rotl(little_endian_sum, 32)) >> 32);
  const auto s16 = static_cast<std::uint16_t>((s32 + std::rotl(s32, 16)) >> 16);
  return __builtin_bswap16(s16);
}

// Builds both values in one register instead of combining two.
constexpr FusedSums make_sums(std::uint32_t crc, std::uint32_t sum) {
  return std::bit_cast<FusedSums>(crc | static_cast<std::uint64_t>(sum) << 32);
}

// Prevents the compiler from reading the source of a copy a second time instead of the copied
// bytes: memory shared with a peer may have changed meanwhile (E-20).
inline void copied() {
  asm volatile("" ::: "memory");
}

// Adds the carries in the upper half of a sum of 64-bit words to its lower half.
constexpr std::uint64_t from_wide(unsigned __int128 sum) {
  const auto carries = static_cast<std::uint64_t>(sum >> 64);
  const std::uint64_t low = static_cast<std::uint64_t>(sum) + carries;
  return low + (low < carries ? 1 : 0);
}

// Addition that keeps a one's-complement sum in 64 bits.
constexpr std::uint64_t add_words(std::uint64_t sum, std::uint64_t words) {
  return sum + (words & 0xffffffffu) + (words >> 32);
}

}  // namespace fused_detail
}  // namespace urnic
