// Message sequence numbers wrap (RFC 5041, 5.2: 0xFFFFFFFF is followed by 0): comparisons go by the
// signed distance.
#pragma once

#include <cstdint>

namespace urnic::ddp {

// How far `a` is behind or beyond `b`: 0 if equal, negative if earlier.
constexpr std::int32_t msn_distance(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b);
}

}  // namespace urnic::ddp
