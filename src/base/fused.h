// One pass over the bytes that computes the MPA CRC32C and the Internet checksum together (D4,
// R-68), and also copies them when sending (D5, E-20). The implementation is chosen once by CPU
// features (portable; SSE4.2 + PCLMUL; AVX-512; VPCLMULQDQ; CRC of ARMv8). All functions are thread
// safe and stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace urnic {

struct FusedSums {
  std::uint32_t crc = 0;  // running CRC32C state, see crc32c.h (not finished)
  std::uint32_t sum = 0;  // unfolded Internet checksum of these bytes only, see inet_checksum.h
};

// CRC and checksum of `bytes`; `crc` is the running state (kCrc32cInit at the start). In the
// returned sum, bytes[0] is the high half of a word.
FusedSums fused_crc_sum(ByteView bytes, std::uint32_t crc);

// The same while copying `bytes` to `dst` (>= bytes.size(), not overlapping). The sums are of the
// written bytes; the source is never read a second time (E-20). A source that changes during the
// copy results in a wrong message, but never in a wrong checksum.
FusedSums fused_copy_crc_sum(std::uint8_t* dst, ByteView bytes, std::uint32_t crc);

// Copies and computes only the checksum, for streams without CRC. Returns the unfolded sum.
std::uint32_t fused_copy_sum(std::uint8_t* dst, ByteView bytes);

// The name of the kernel in use, e.g. "avx512+vpclmulqdq", for `urnic config` and benchmark
// records.
std::string_view fused_kernel_name();

// All kernels that this CPU supports, for tests and benchmarks; index 0 is the portable one.
struct FusedKernel {
  std::string_view name;
  FusedSums (*crc_sum)(ByteView, std::uint32_t);
  FusedSums (*copy_crc_sum)(std::uint8_t*, ByteView, std::uint32_t);
};
std::size_t fused_kernel_count();
FusedKernel fused_kernel(std::size_t index);

}  // namespace urnic
