// So many bytes a second and no more, whatever the wire could do.
#pragma once

#include <algorithm>
#include <cstdint>

namespace urnic::cli {

class Pace {
 public:
  // 0: as fast as it goes.
  explicit Pace(std::uint64_t bytes_per_second = 0)
      : rate_(static_cast<double>(bytes_per_second)) {}

  // Whether more may go at `now` (seconds).
  bool may(double now) const { return rate_ == 0 || now >= next_; }
  // So many bytes go now, which is paid for by waiting afterwards. What was not used lately may be
  // made up for, so that a loop that sleeps for a moment loses nothing.
  void spend(std::uint64_t bytes, double now) {
    if (rate_ == 0) return;
    next_ = std::max(next_, now - kMadeUp) + static_cast<double>(bytes) / rate_;
  }
  bool limits() const { return rate_ != 0; }
  // Seconds until more may go.
  double wait(double now) const { return rate_ == 0 ? 0 : std::max(0.0, next_ - now); }

 private:
  static constexpr double kMadeUp = 0.05;
  double rate_;
  double next_ = 0;
};

}  // namespace urnic::cli
