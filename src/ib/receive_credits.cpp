#include "ib/receive_credits.h"

#include <algorithm>
#include <bit>

namespace urnic::ib {

// 0, 1, 2, 3, 4, 6, 8, 12 ... 24576, 32768: powers of two, and the mean of each two.
std::uint8_t credit_code(std::uint32_t count) {
  constexpr std::uint32_t kMost = 32768;
  count = std::min(count, kMost);
  if (count < 2) return static_cast<std::uint8_t>(count);
  const unsigned log = static_cast<unsigned>(std::bit_width(count)) - 1;
  const unsigned middle = count >> (log - 1) & 1;
  return static_cast<std::uint8_t>(2 * log + middle);
}

}  // namespace urnic::ib
