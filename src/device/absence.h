// Tells our thread that the application, which was polling or posting all the time, has stayed
// away. The application puts the alarm off while it is there: a system call now and then, and
// our thread, asleep on the descriptor, does not have to get up to look.
//
// Under the ownership of the engine, but for fd().
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include "base/time.h"

namespace urnic::device {

class Absence {
 public:
  // How long it may stay away before it is noticed, and how much of that is left when the alarm is
  // put off: who is kept from its polls for less has not gone.
  static constexpr Duration kNoticed = Duration::us(500), kPutOff = Duration::us(250);

  Absence() : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {}
  ~Absence() {
    if (timer_ >= 0) close(timer_);
  }
  Absence(const Absence&) = delete;
  Absence& operator=(const Absence&) = delete;
  // Readable when it has stayed away; -1 when there was no descriptor for it.
  int fd() const { return timer_; }

  // It is there at `now`.
  void seen(Instant now) {
    if (now + kPutOff >= alarm_) begin(now);
  }
  // It is watched from now on.
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
