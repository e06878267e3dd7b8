// The result of a ping-pong, half round trips in microseconds: median and 99th percentile on one
// line, or the whole distribution as JSON.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

namespace urnic::bench {

class HalfTrips {
 public:
  // There must be at least one.
  explicit HalfTrips(std::vector<double> us) : us_(std::move(us)) {
    std::sort(us_.begin(), us_.end());
  }

  // `percent`: from 0 to 100.
  double at(double percent) const {
    const auto rank =
        static_cast<std::size_t>(static_cast<double>(us_.size()) * percent / 100 + 1e-9);
    return us_[std::min(rank, us_.size() - 1)];
  }

  // [[percent, us], ...]
  void print_json() const {
    const char* before = "[";
    for (const double percent : kPercents) {
      std::printf("%s[%g, %.3f]", before, percent, at(percent));
      before = ", ";
    }
    std::printf("]\n");
  }

 private:
  static constexpr double kPercents[] = {
      0,  1,  2,  5,  10, 15,   20, 25,   30,   35, 40,   45,   50,   55,    60,    65,
      70, 75, 80, 85, 90, 92.5, 95, 97.5, 98.5, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99};
  std::vector<double> us_;
};

}  // namespace urnic::bench
