#include "cli/xxh128.h"

#include <algorithm>

#include "cli/xxh3_avx512.h"

#define XXH_INLINE_ALL  // no library at run time
#include <xxhash.h>

namespace urnic::cli {

struct Xxh128::State {
  XXH3_state_t xxh3;
};

Xxh128::Xxh128(bool wide) : state_(std::make_unique<State>()), wide_(wide) {
  XXH3_128bits_reset(&state_->xxh3);
}
Xxh128::~Xxh128() = default;
Xxh128::Xxh128(Xxh128&&) noexcept = default;
Xxh128& Xxh128::operator=(Xxh128&&) noexcept = default;

void Xxh128::add(std::span<const std::uint8_t> bytes) {
  if (wide_) {
    xxh3_update_avx512(&state_->xxh3, bytes.data(), bytes.size());
  } else {
    XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
  }
}

Xxh128 Xxh128::copy() const {
  Xxh128 other(wide_);
  XXH3_copyState(&other.state_->xxh3, &state_->xxh3);
  return other;
}

Digest Xxh128::finish() {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh3));
  XXH3_128bits_reset(&state_->xxh3);
  Digest d{};
  std::copy_n(canonical.digest, d.size(), d.begin());
  return d;
}

std::string to_hex(const Digest& digest) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t b : digest) {
    out += kHex[b >> 4];
    out += kHex[b & 15];
  }
  return out;
}

}  // namespace urnic::cli
