// Limits a sender to a number of bytes per second, independent of the speed of the wire.
#pragma once

#include <algorithm>
#include <cstdint>

namespace urnic::cli {

class Pace {
 public:
  // 0: no limit.
  explicit Pace(std::uint64_t bytes_per_second = 0)
      : rate_(static_cast<double>(bytes_per_second)) {}

  // Returns true if more bytes may be sent at `now` (seconds).
  bool may(double now) const { return rate_ == 0 || now >= next_; }
  // Accounts for `bytes` sent now; the wait follows afterwards. Up to kMadeUp seconds of unused
  // time may be made up for, so that a loop that sleeps briefly does not lose rate.
  void spend(std::uint64_t bytes, double now) {
    if (rate_ == 0) return;
    next_ = std::max(next_, now - kMadeUp) + static_cast<double>(bytes) / rate_;
  }
  bool limits() const { return rate_ != 0; }
  // Seconds until more bytes may be sent.
  double wait(double now) const { return rate_ == 0 ? 0 : std::max(0.0, next_ - now); }

 private:
  static constexpr double kMadeUp = 0.05;
  double rate_;
  double next_ = 0;
};

}  // namespace urnic::cli
