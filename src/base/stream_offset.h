// A position in one direction of a byte stream, counted in bytes from the first byte after the SYN.
// It has 64 bits and never wraps around. All layers above TCP use it; only tcp/seq.h deals with the
// modular arithmetic of sequence numbers.
#pragma once

#include <compare>
#include <cstdint>

namespace urnic {

class StreamOffset {
 public:
  constexpr StreamOffset() = default;
  constexpr explicit StreamOffset(std::uint64_t v) : v_(v) {}

  constexpr std::uint64_t value() const { return v_; }
  constexpr auto operator<=>(const StreamOffset&) const = default;
  constexpr StreamOffset operator+(std::uint64_t n) const { return StreamOffset(v_ + n); }
  constexpr StreamOffset operator-(std::uint64_t n) const { return StreamOffset(v_ - n); }
  // The number of bytes from `o` to this; `o` must not be later.
  constexpr std::uint64_t operator-(StreamOffset o) const { return v_ - o.v_; }
  constexpr StreamOffset& operator+=(std::uint64_t n) {
    v_ += n;
    return *this;
  }

 private:
  std::uint64_t v_ = 0;
};

}  // namespace urnic
