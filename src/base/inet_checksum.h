// The Internet checksum (RFC 1071) as a running sum.
//
// A `sum` is an unfolded one's-complement sum of 16-bit big-endian words, in 32 or 64 bits. `fold`
// reduces it to the 16 bits whose complement goes on the wire. Sums of consecutive pieces may be
// added if every piece except the last has an even length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace urnic {

// The one's-complement sum of `bytes` (big-endian words; an odd last byte is padded with zero on
// the right), reduced below 2^32. Uses the fastest kernel for this CPU; thread safe.
std::uint32_t inet_sum(ByteView bytes);

// The same value by plain code, for tests and for CPUs without vector instructions.
std::uint32_t inet_sum_portable(ByteView bytes);

// The same for a header of `n` bytes, a multiple of four, inlined, because a call to the vector
// kernel would cost more than the sum. Folded to 16 bits.
inline std::uint32_t inet_sum_words(const std::uint8_t* p, std::size_t n) {
  // The byte order of the words only affects the byte order of the sum (RFC 1071, 2 (B)). 2^64 = 1
  // modulo 0xffff, so a carry is added at the bottom.
  std::uint64_t sum = 0;
  for (; n >= 8; n -= 8, p += 8) {
    const std::uint64_t four = load_le64(p);
    sum += four;
    sum += sum < four ? 1 : 0;
  }
  if (n != 0) {
    const std::uint64_t two = load_le32(p);
    sum += two;
    sum += sum < two ? 1 : 0;
  }
  sum = (sum & 0xffffffff) + (sum >> 32);
  auto half = static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(sum >> 32);
  half += (half << 16) | (half >> 16);  // upper half: the sum of both halves with the carry
  return __builtin_bswap16(static_cast<std::uint16_t>(half >> 16));
}

// Reduces a sum to 16 bits (not complemented).
constexpr std::uint16_t inet_fold(std::uint64_t sum) {
  sum = (sum & 0xffffffffULL) + (sum >> 32);
  sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

// The value of the checksum field, for a sum over everything with that field as zero.
constexpr std::uint16_t inet_checksum(std::uint64_t sum) {
  return static_cast<std::uint16_t>(~inet_fold(sum));
}

}  // namespace urnic
