// Time as two types. The core never reads a clock: "now" is an argument (D1).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace urnic {

// A span of time in nanoseconds; may be negative.
class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration ns(std::int64_t v) { return Duration(v); }
  static constexpr Duration us(std::int64_t v) { return Duration(v * 1000); }
  static constexpr Duration ms(std::int64_t v) { return Duration(v * 1000000); }
  static constexpr Duration s(std::int64_t v) { return Duration(v * 1000000000); }
  static constexpr Duration zero() { return Duration(0); }

  constexpr std::int64_t count_ns() const { return v_; }
  constexpr std::int64_t count_us() const { return v_ / 1000; }
  constexpr std::int64_t count_ms() const { return v_ / 1000000; }

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration o) const { return Duration(v_ + o.v_); }
  constexpr Duration operator-(Duration o) const { return Duration(v_ - o.v_); }
  constexpr Duration operator*(std::int64_t k) const { return Duration(v_ * k); }
  constexpr Duration operator/(std::int64_t k) const { return Duration(v_ / k); }

 private:
  constexpr explicit Duration(std::int64_t v) : v_(v) {}
  std::int64_t v_ = 0;
};

// A point on a monotonic clock, in nanoseconds since an arbitrary origin. `never()` is later than
// all others; adding to it returns `never()`.
class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant from_ns(std::int64_t v) { return Instant(v); }
  static constexpr Instant never() { return Instant(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t ns() const { return v_; }
  constexpr bool is_never() const { return *this == never(); }

  constexpr auto operator<=>(const Instant&) const = default;
  constexpr Duration operator-(Instant o) const { return Duration::ns(v_ - o.v_); }
  constexpr Instant operator+(Duration d) const {
    return is_never() ? never() : Instant(v_ + d.count_ns());
  }
  constexpr Instant operator-(Duration d) const {
    return is_never() ? never() : Instant(v_ - d.count_ns());
  }

 private:
  constexpr explicit Instant(std::int64_t v) : v_(v) {}
  std::int64_t v_ = 0;
};

constexpr Instant earlier(Instant a, Instant b) {
  return a < b ? a : b;
}

}  // namespace urnic
