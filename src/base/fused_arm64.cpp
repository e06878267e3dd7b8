// The kernels for ARMv8 with its CRC instructions: one loop of eight bytes, of which each is read
// once.
#include <cstring>

#include "base/fused_kernels.h"

#if defined(__aarch64__)
#include <arm_acle.h>

namespace urnic {
namespace {

using fused_detail::add_words;
using fused_detail::to_network_sum;

#define URNIC_TARGET __attribute__((target("+crc")))

// The next n bytes, at most eight, as a number. The value is opaque to the compiler, so that memory
// is read only once (E-20).
template <bool kCopy>
inline std::uint64_t next(const std::uint8_t*& p, std::uint8_t*& dst, std::size_t n) {
  std::uint64_t v = 0;
  std::memcpy(&v, p, n);
  p += n;
  if constexpr (kCopy) {
    asm volatile("" : "+r"(v));
    std::memcpy(dst, &v, n);
    dst += n;
  }
  return v;
}

URNIC_TARGET std::uint32_t add_rest(std::uint32_t crc, std::uint64_t v, std::size_t n) {
  if ((n & 4) != 0) {
    crc = __crc32cw(crc, static_cast<std::uint32_t>(v));
    v >>= 32;
  }
  if ((n & 2) != 0) {
    crc = __crc32ch(crc, static_cast<std::uint16_t>(v));
    v >>= 16;
  }
  if ((n & 1) != 0) crc = __crc32cb(crc, static_cast<std::uint8_t>(v));
  return crc;
}

template <bool kCopy>
URNIC_TARGET FusedSums run(std::uint8_t* dst, ByteView bytes, std::uint32_t crc) {
  const std::uint8_t* p = bytes.data();
  std::size_t n = bytes.size();
  std::uint64_t sum = 0;
  for (; n >= 8; n -= 8) {
    const std::uint64_t v = next<kCopy>(p, dst, 8);
    crc = __crc32cd(crc, v);
    sum = add_words(sum, v);
  }
  if (n != 0) {
    const std::uint64_t v = next<kCopy>(p, dst, n);
    crc = add_rest(crc, v, n);
    sum = add_words(sum, v);
  }
  return {crc, to_network_sum(sum)};
}

FusedSums crc_sum(ByteView bytes, std::uint32_t crc) {
  return run<false>(nullptr, bytes, crc);
}
FusedSums copy_crc_sum(std::uint8_t* dst, ByteView bytes, std::uint32_t crc) {
  return run<true>(dst, bytes, crc);
}
URNIC_TARGET std::uint32_t crc_only(std::uint32_t state, ByteView bytes) {
  const std::uint8_t *p = bytes.data(), *const end = p + bytes.size() / 8 * 8;
  std::uint8_t* none = nullptr;
  while (p != end) state = __crc32cd(state, next<false>(p, none, 8));
  const std::size_t n = bytes.size() % 8;
  return n == 0 ? state : add_rest(state, next<false>(p, none, n), n);
}
std::uint32_t copy_sum(std::uint8_t* dst, ByteView bytes) {
  return kFusedPortable.copy_sum(dst, bytes);
}
std::uint32_t sum(ByteView bytes) {
  return kFusedPortable.sum(bytes);
}

}  // namespace

const FusedKernelSet kFusedArm64 = {"armv8-crc", crc_sum, copy_crc_sum, crc_only, copy_sum, sum};

}  // namespace urnic
#endif
