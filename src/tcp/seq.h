// TCP sequence numbers: arithmetic and comparison modulo 2^32 (RFC 9293, 3.4).
#pragma once

#include <cstdint>

namespace urnic::tcp {

class Seq {
 public:
  constexpr Seq() = default;
  constexpr explicit Seq(std::uint32_t v) : v_(v) {}

  constexpr std::uint32_t value() const { return v_; }
  constexpr bool operator==(const Seq&) const = default;
  // Modular order: meaningful for numbers less than 2^31 apart.
  constexpr bool operator<(Seq o) const { return static_cast<std::int32_t>(v_ - o.v_) < 0; }
  constexpr bool operator>(Seq o) const { return o < *this; }
  constexpr bool operator<=(Seq o) const { return !(o < *this); }
  constexpr bool operator>=(Seq o) const { return !(*this < o); }

  constexpr Seq operator+(std::uint32_t n) const { return Seq(v_ + n); }
  constexpr Seq operator-(std::uint32_t n) const { return Seq(v_ - n); }
  // Signed distance from `o` to this.
  constexpr std::int32_t operator-(Seq o) const { return static_cast<std::int32_t>(v_ - o.v_); }

 private:
  std::uint32_t v_ = 0;
};

constexpr Seq seq_max(Seq a, Seq b) {
  return a < b ? b : a;
}

}  // namespace urnic::tcp
