// The kernels in plain C++, for CPUs without SSE4.2 and as the reference for tests.
#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "base/fused_kernels.h"

namespace urnic {
namespace {

using fused_detail::add_words;
using fused_detail::copied;
using fused_detail::to_network_sum;

std::uint64_t words_sum(const std::uint8_t* p, std::size_t n) {
  std::uint64_t sum = 0;
  for (; n >= 8; n -= 8, p += 8) {
    std::uint64_t v;
    std::memcpy(&v, p, 8);
    sum = add_words(sum, v);
  }
  std::uint64_t last = 0;
  if (n != 0) std::memcpy(&last, p, n);
  return add_words(sum, last);
}

std::uint32_t sum(ByteView bytes) {
  return to_network_sum(words_sum(bytes.data(), bytes.size()));
}

// Blocks that stay in the L1 cache between the passes. The copying versions compute the sums from
// the written bytes, so that the source is read only once (E-20).
constexpr std::size_t kBlock = 2048;

template <bool kCopy>
FusedSums run(std::uint8_t* dst, ByteView bytes, std::uint32_t crc) {
  std::uint64_t total = 0;
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kBlock);
    const std::uint8_t* p = bytes.data();
    if constexpr (kCopy) {
      std::memcpy(dst, p, n);
      copied();
      p = dst;
      dst += n;
    }
    crc = crc32c_update_portable(crc, {p, n});
    total += words_sum(p, n);
    bytes = bytes.subspan(n);
  }
  return {crc, to_network_sum(total)};
}

FusedSums crc_sum(ByteView bytes, std::uint32_t crc) {
  return run<false>(nullptr, bytes, crc);
}
FusedSums copy_crc_sum(std::uint8_t* dst, ByteView bytes, std::uint32_t crc) {
  return run<true>(dst, bytes, crc);
}
std::uint32_t copy_sum(std::uint8_t* dst, ByteView bytes) {
  std::uint64_t total = 0;
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kBlock);
    std::memcpy(dst, bytes.data(), n);
    copied();
    total += words_sum(dst, n);
    dst += n;
    bytes = bytes.subspan(n);
  }
  return to_network_sum(total);
}

}  // namespace

const FusedKernelSet kFusedPortable = {"portable", crc_sum, copy_crc_sum, crc32c_update_portable,
                                       copy_sum,   sum};

}  // namespace urnic
