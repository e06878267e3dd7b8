// An alarm that tells our thread when an application that polled or posted all the time has
// stopped. While the application is active it postpones the alarm now and then, by a system call.
// Our thread sleeps on the descriptor and does not have to wake up to check.
//
// Needs the ownership of the engine, except for fd().
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include "base/time.h"

namespace urnic::device {

class Absence {
 public:
  // How long the application may be silent before the alarm fires, and the time left at which the
  // alarm is postponed: an application that is interrupted for less than that is still active.
  static constexpr Duration kNoticed = Duration::us(500), kPutOff = Duration::us(250);

  Absence() : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {}
  ~Absence() {
    if (timer_ >= 0) close(timer_);
  }
  Absence(const Absence&) = delete;
  Absence& operator=(const Absence&) = delete;
  // Readable when the application has been silent too long; -1 when no descriptor was left.
  int fd() const { return timer_; }

  // The application is active at `now`.
  void seen(Instant now) {
    if (now + kPutOff >= alarm_) begin(now);
  }
  // Starts to watch the application.
  void begin(Instant now) {
    alarm_ = now + kNoticed;
    itimerspec at{};
    at.it_value.tv_nsec = kNoticed.count_ns();
    timerfd_settime(timer_, 0, &at, nullptr);
  }

 private:
  int timer_;
  Instant alarm_;
};

}  // namespace urnic::device
