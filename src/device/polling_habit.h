// Does the application poll all the time? Judged by what share of its time it spends in polls, one
// window after the other. Who polls back to back counts as being in them; who computes, sleeps or
// spins on memory in between does not. What a post takes, which may have sent, says neither.
//
// Only of such an application may the sleeping thread be left without a wake-up by the port
// (driver.h); it then looks by itself. A function of the times it is told.
#pragma once

#include "base/time.h"

namespace urnic::device {

class PollingHabit {
 public:
  // How long it takes to believe it, and how long a pause ends it.
  static constexpr Duration kWindow = Duration::ms(1), kPause = Duration::us(50);
  // Polls that begin so soon after each other are back to back.
  static constexpr Duration kBackToBack = Duration::us(2);

  // A poll begins.
  void begin(Instant now) {
    const Duration between = now - last_;
    if (yielded_) {
      inside_ = inside_ + between;
    } else if (between > kPause) {
      forget();
    } else if (!posted_ || between > kSending) {
      Duration& where = between <= kBackToBack ? inside_ : outside_;
      where = where + between;
    }
    if (inside_ + outside_ >= kWindow) {
      steady_ = inside_ >= outside_;
      inside_ = outside_ = Duration();
    }
    last_ = now;
    posted_ = yielded_ = false;
  }
  // It ends after it did much; one that found nothing or little is over in no time.
  void end(Instant now) {
    inside_ = inside_ + (now - last_);
    last_ = now;
  }
  // It will end by leaving the core to others, for want of room, which may take long.
  void yield() { yielded_ = true; }
  // The application posted.
  void post(Instant now) {
    begin(now);
    posted_ = true;
  }
  // It says, or it has turned out, that it does something else.
  void forget() {
    steady_ = false;
    inside_ = outside_ = Duration();
  }
  bool steady() const { return steady_; }

 private:
  static constexpr Duration kSending = Duration::us(20);
  Instant last_;
  Duration inside_, outside_;
  bool posted_ = false, yielded_ = false;  // since the last poll
  bool steady_ = false;
};

}  // namespace urnic::device
