// Decides whether the application posts without a pause. Then it posts again before the last post
// is old, and its sends may wait for each other (gathering.h). Such an application may poll as
// well; polls that find completions are not counted here.
//
// A program that posts and then spins on memory until the peer's Write arrives may post as often,
// but it waits for each arrival. It is recognized by that: nearly every post follows an arrival
// that our thread served. A function of the times passed to it.
#pragma once

#include "base/time.h"
#include "device/polling_habit.h"

namespace urnic::device {

class PostingHabit {
 public:
  // How long the habit must last to count, the least number of doorbells in that time, and how long
  // a pause ends it.
  static constexpr Duration kWindow = Duration::ms(1), kPause = PollingHabit::kPause;
  static constexpr unsigned kLeast = 64;

  // The application posted.
  void post(Instant now) {
    if (now - last_ > kPause && pauses_.ends_habit(last_, now)) forget();
    if (posts_ == 0) {
      begin_ = now;
      served_ = 0;
    }
    last_ = now;
    if (++posts_ < kLeast || now - begin_ < kWindow) return;
    streams_ = now - begin_ < kWindow * 2 && served_ < posts_ - posts_ / 4;
    posts_ = 0;
  }
  // Our thread served an arrival, which the application may be waiting for.
  void served() { ++served_; }
  // Checks at another moment whether the habit still lasts.
  void look(Instant now) {
    if (streams_ && now - last_ > kPause) forget();
  }
  // The application announced, or its behaviour showed, that it does something else.
  void forget() {
    streams_ = false;
    posts_ = 0;
  }
  bool streams() const { return streams_; }

 private:
  Instant begin_, last_;
  RarePause pauses_;
  unsigned posts_ = 0, served_ = 0;  // since begin_
  bool streams_ = false;
};

}  // namespace urnic::device
