// The kernels this engine exists for: one pass over the bytes that yields the MPA CRC32C and the
// Internet checksum together (D4, R-68), and, when sending, copies them as well (D5, E-20).
// Chosen once at start-up by CPU features (portable; SSE4.2 + PCLMUL; AVX-512; VPCLMULQDQ).
// All functions are thread safe and keep no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace urnic {

struct FusedSums {
  std::uint32_t crc = 0;  // running CRC32C state, see crc32c.h (not finished)
  std::uint32_t sum = 0;  // unfolded Internet checksum of just these bytes, see inet_checksum.h
};

// CRC and checksum of `bytes`; `crc` is the running state to continue from (kCrc32cInit at the
// start). The returned sum treats bytes[0] as the high half of a word.
FusedSums fused_crc_sum(ByteView bytes, std::uint32_t crc);

// The same while copying `bytes` to `dst` (>= bytes.size(), not overlapping). The sums are of the
// bytes as written, never by a second read of the source (E-20): a source that changes under the
// copy yields a wrong message, never a wrong checksum.
FusedSums fused_copy_crc_sum(std::uint8_t* dst, ByteView bytes, std::uint32_t crc);

// Copy with the checksum alone, for streams without CRC. Returns the unfolded sum.
std::uint32_t fused_copy_sum(std::uint8_t* dst, ByteView bytes);

// Name of the kernel in use, e.g. "avx512+vpclmulqdq"; for `urnic config` and benchmark records.
std::string_view fused_kernel_name();

// Every kernel this CPU can run, for tests and benchmarks: index 0 is the portable one.
struct FusedKernel {
  std::string_view name;
  FusedSums (*crc_sum)(ByteView, std::uint32_t);
  FusedSums (*copy_crc_sum)(std::uint8_t*, ByteView, std::uint32_t);
};
std::size_t fused_kernel_count();
FusedKernel fused_kernel(std::size_t index);

}  // namespace urnic
