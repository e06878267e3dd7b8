// A timer for work that follows the engine's activity at a distance: it runs from the first
// activity on, expires once, and is off while there is none, so that an idle process sleeps (E-39).
// Activity costs a load.
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/time.h"
#include "port/fd.h"

namespace urnic::device {

class ActivityTimer {
 public:
  // False: no descriptor is left; it never expires then. Call before the first active().
  bool open(Duration distance) {
    timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (!timer_) return false;
    distance_.store(distance.count_ns(), std::memory_order_relaxed);
    running_.store(false, std::memory_order_relaxed);
    return true;
  }
  // Readable when it has expired, until stop().
  int fd() const { return timer_.get(); }
  // Needs the ownership of the engine.
  void active() {
    if (!running_.load(std::memory_order_relaxed)) start();
  }
  // It has expired; the next activity starts it again. Call before the work, so that no activity
  // remains without it.
  void stop() {
    std::uint64_t times = 0;
    if (read(timer_.get(), &times, sizeof times) > 0) running_.store(false);
  }
  void set_distance(Duration distance) {
    distance_.store(distance.count_ns(), std::memory_order_relaxed);
  }

 private:
  void start() {
    running_.store(true, std::memory_order_relaxed);
    const std::int64_t ns = distance_.load(std::memory_order_relaxed);
    itimerspec at{};
    at.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
    timerfd_settime(timer_.get(), 0, &at, nullptr);
  }

  port::Fd timer_;
  std::atomic<std::int64_t> distance_{0};
  std::atomic<bool> running_{true};  // true without a descriptor
};

}  // namespace urnic::device
