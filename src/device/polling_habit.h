// Decides whether the application polls all the time, by the share of its time that it spends in
// polls, one window after the other. Polls back to back count as time in polls; time between polls
// in which it computes, sleeps or spins on memory does not. The time of a post, which may have
// sent, counts as neither.
//
// Only for such an application may the port be left without a wake-up for the sleeping thread
// (driver.h), which then checks by itself. A function of the times passed to it.
#pragma once

#include "base/time.h"

namespace urnic::device {

// A short pause after a long activity does not end a habit: another thread took the core. One that
// computes between its calls pauses for longer, or more often.
class RarePause {
 public:
  static constexpr Duration kActive = Duration::ms(2), kShort = Duration::us(500);
  // The application was not active from `from` to `now`.
  bool ends_habit(Instant from, Instant now) {
    const bool rare = from - ended_ >= kActive && now - from <= kShort;
    ended_ = now;
    return !rare;
  }

 private:
  Instant ended_;  // the last pause
};

class PollingHabit {
 public:
  // How long the habit must last to count, and how long a pause ends it.
  static constexpr Duration kWindow = Duration::ms(1), kPause = Duration::us(50);
  // Polls that begin within this time of each other are back to back.
  static constexpr Duration kBackToBack = Duration::us(2);

  // A poll begins.
  void begin(Instant now) {
    const Duration between = now - last_;
    if (yielded_) {
      inside_ = inside_ + between;
    } else if (between > kPause) {
      if (pauses_.ends_habit(last_, now)) forget();
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
  // A poll ends that did much; one that found little or nothing takes no time.
  void end(Instant now) {
    inside_ = inside_ + (now - last_);
    last_ = now;
  }
  // The poll will end by yielding the core, for want of room, which may take long.
  void yield() { yielded_ = true; }
  // The application posted.
  void post(Instant now) {
    begin(now);
    posted_ = true;
  }
  // The application announced, or its behaviour showed, that it does something else.
  void forget() {
    steady_ = false;
    inside_ = outside_ = Duration();
  }
  bool steady() const { return steady_; }

 private:
  static constexpr Duration kSending = Duration::us(20);
  Instant last_;
  RarePause pauses_;
  Duration inside_, outside_;
  bool posted_ = false, yielded_ = false;  // since the last poll
  bool steady_ = false;
};

}  // namespace urnic::device
