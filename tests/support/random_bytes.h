// Seeded random bytes and mutations for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace urnic::test {

inline std::vector<std::uint8_t> random_bytes(Rng& rng, std::size_t n) {
  std::vector<std::uint8_t> v(n);
  for (auto& b : v) b = static_cast<std::uint8_t>(rng.next());
  return v;
}

// A mutation of `seed` that a hostile or broken peer might produce: bytes or bits changed,
// truncated, or extended. The result is an allocation of exactly its size, so that a sanitizer
// detects every read past the end.
inline std::vector<std::uint8_t> mutate(Rng& rng, std::vector<std::uint8_t> v) {
  static constexpr std::uint8_t kTelling[] = {0x00, 0x01, 0x02, 0x7f, 0x80, 0xfc, 0xff};
  for (std::uint64_t n = rng.below(4); n != 0 && !v.empty(); --n) {
    auto& byte = v[rng.below(v.size())];
    switch (rng.below(3)) {
      case 0:
        byte = static_cast<std::uint8_t>(rng.next());
        break;
      case 1:
        byte ^= static_cast<std::uint8_t>(1u << rng.below(8));
        break;
      default:
        byte = kTelling[rng.below(sizeof kTelling)];
    }
  }
  if (rng.chance(0.3)) v.resize(rng.below(v.size() + 1));
  if (rng.chance(0.1)) {
    const auto more = random_bytes(rng, rng.below(64));
    v.insert(v.end(), more.begin(), more.end());
  }
  return std::vector<std::uint8_t>(v.begin(), v.end());
}

}  // namespace urnic::test
