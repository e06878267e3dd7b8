// Message sequence numbers wrap around (RFC 5041, 5.2: 0xFFFFFFFF is followed by 0), so they are
// compared by signed distance.
#pragma once

#include <cstdint>

namespace urnic::ddp {

// Distance from `b` to `a`: 0 if equal, negative if `a` is earlier.
constexpr std::int32_t msn_distance(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b);
}

}  // namespace urnic::ddp
