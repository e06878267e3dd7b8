#include "ib/dcqcn.h"

namespace urnic::ib {

// One step of the rate. It is larger the more steps the timer and the packet counter have made.
void DcqcnWindow::increase() {
  const std::uint32_t add = std::max<std::uint32_t>(kOne, most_ / 256);
  if (std::max(by_time_, by_sent_) > kFast) {
    const std::uint32_t both = std::min(by_time_, by_sent_);
    const std::uint32_t times = both > kFast ? std::min(5 * (both - kFast), 64u) : 1;
    target_ = std::min(most_, target_ + add * times);
  }
  // Rounded up, so that it reaches the target.
  current_ = std::min(most_, (target_ + current_ + 1) / 2);
}

void DcqcnWindow::advance(Instant now) {
  if (due_.is_never()) return;
  while (sent_ >= kBytes) {
    sent_ -= kBytes;
    ++by_sent_;
    increase();
  }
  if (now < due_) return;
  std::int64_t periods = (now - due_).count_ns() / kPeriod.count_ns() + 1;
  due_ = due_ + kPeriod * periods;
  for (periods = std::min(periods, kMostPeriods); periods > 0; --periods) {
    alpha_ -= alpha_ >> kGain;
    ++by_time_;
    increase();
  }
  // back to the initial state
  if (current_ == most_ && alpha_ >> kGain == 0) due_ = Instant::never();
}

bool DcqcnWindow::cut(Instant now) {
  advance(now);
  if (any_cut_ && now < cut_at_ + kLeastApart) return false;
  any_cut_ = true;
  cut_at_ = now;
  target_ = current_;
  const std::uint64_t off = std::uint64_t{current_} * alpha_ / (2 * kAlphaOne);
  current_ = std::max(floor(), current_ - static_cast<std::uint32_t>(off));
  alpha_ = alpha_ - (alpha_ >> kGain) + (kAlphaOne >> kGain);
  sent_ = by_time_ = by_sent_ = 0;
  due_ = now + kPeriod;
  return true;
}

void DcqcnWindow::time_out(Instant now) {
  any_cut_ = false;
  cut(now);
  current_ = floor();
}

}  // namespace urnic::ib
