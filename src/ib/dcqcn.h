// DCQCN's reaction point (Zhu et al., SIGCOMM 2015, 3 and table 14), with the rate expressed in
// packets per round trip, so that a window enforces it (S-10). alpha estimates how many packets are
// marked: a CNP raises it and cuts the rate by half of it, and each 55 us without a CNP lowers it.
// The rate recovers by timer and by packets sent: five times half way to the former rate, then by
// additions, then by larger ones.
//
// Arithmetic on integers; time is an argument, and is caught up with when a function is called.
// Owned by the requester of one queue pair.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace urnic::ib {

class DcqcnWindow {
 public:
  static constexpr std::uint32_t kFloor = 2;
  static constexpr Duration kPeriod = Duration::us(55);      // of alpha and of the rate
  static constexpr Duration kLeastApart = Duration::us(50);  // between CNPs that are acted upon
  static constexpr std::uint32_t kAlphaOne = 1u << 20;

  explicit DcqcnWindow(std::uint32_t most)
      : most_(most * kOne), current_(most * kOne), target_(most * kOne) {}

  std::uint32_t packets() const { return current_ / kOne; }
  std::uint32_t alpha() const { return alpha_; }  // in parts of kAlphaOne

  void sent() { ++sent_; }
  void advance(Instant now);
  // A CNP, or many losses. False: too soon after the last cut.
  bool cut(Instant now);
  void time_out(Instant now);

 private:
  static constexpr std::uint32_t kOne = 256;      // one packet; rates are in parts of it
  static constexpr unsigned kGain = 8;            // g is 1/256
  static constexpr std::uint32_t kFast = 5;       // F
  static constexpr std::uint32_t kBytes = 10000;  // B: packets of 1 KiB
  static constexpr std::int64_t kMostPeriods = 4096;

  void increase();
  std::uint32_t floor() const { return std::min(kFloor * kOne, most_); }

  std::uint32_t most_, current_, target_;
  std::uint32_t alpha_ = kAlphaOne;
  std::uint32_t sent_ = 0, by_time_ = 0, by_sent_ = 0;  // since the last cut
  bool any_cut_ = false;
  Instant cut_at_, due_ = Instant::never();
};

}  // namespace urnic::ib
