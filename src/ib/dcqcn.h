// DCQCN's reaction point (Zhu et al., SIGCOMM 2015, 3 and table 14), with the rate told in packets
// for each round trip, so that a window carries it out (S-10). alpha estimates how much is marked:
// a CNP lifts it and cuts the rate by half of it, each 55 us without one lowers it. The rate comes
// back by timer and by what was sent: five times half way to where it was, then by additions, then
// by larger ones.
//
// Arithmetic on whole numbers; time is an argument, and is caught up with when it is told. Owned by
// the requester of one queue pair.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace urnic::ib {

class DcqcnWindow {
 public:
  static constexpr std::uint32_t kFloor = 2;
  static constexpr Duration kPeriod = Duration::us(55);      // of alpha and of the rate
  static constexpr Duration kLeastApart = Duration::us(50);  // CNPs that are acted upon
  static constexpr std::uint32_t kAlphaOne = 1u << 20;

  explicit DcqcnWindow(std::uint32_t most)
      : most_(most * kOne), current_(most * kOne), target_(most * kOne) {}

  std::uint32_t packets() const { return current_ / kOne; }
  std::uint32_t alpha() const { return alpha_; }  // in parts of kAlphaOne

  void sent() { ++sent_; }
  void advance(Instant now);
  // A CNP, or many losses. False: too soon behind another.
  bool cut(Instant now);
  void time_out(Instant now);

 private:
  static constexpr std::uint32_t kOne = 256;      // in parts of a packet
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
