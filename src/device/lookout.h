// How long the thread on the port polls for an arrival before it sleeps. The answer it waits for is
// often only a few microseconds away, and waking a sleeping thread on another core takes longer
// than that. Between two polls the thread yields the core, so that a peer on the same core is not
// delayed.
//
// Needs the ownership of the engine, except for out(), which the thread on the port calls.
#pragma once

#include <poll.h>
#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "base/time.h"

namespace urnic::device {

class Lookout {
 public:
  // If other threads use the yielded core for this long, there is no core to poll on.
  static constexpr Duration kPutAside = Duration::us(100);
  // Then no polling for this long.
  static constexpr Duration kRest = Duration::ms(100);

  // `longest` 0: never poll.
  explicit Lookout(Duration longest) : longest_(longest) {}

  // Like ppoll(2), as long as polling is worthwhile, and at most until `end`.
  int out(pollfd* fds, unsigned n, Instant begun, Instant end) {
    const Instant until = std::min(begun + begin(begun), end);
    for (Instant now = begun; now < until;) {
      const int woken = ::poll(fds, n, 0);
      if (woken != 0) return woken;
      const Instant before = now;
      sched_yield();
      now = monotonic_now();
      if (!goes_on(before, now)) break;
    }
    return 0;
  }
  // How long a wait that starts at `now` should poll.
  Duration begin(Instant now) const {
    return brief_ && now >= rests_until_ ? longest_ : Duration();
  }
  // The core was yielded from `before` to `now`. False: other threads needed it.
  bool goes_on(Instant before, Instant now) {
    if (now - before < kPutAside) return true;
    rests_until_ = now + kRest;
    return false;
  }
  // A wait has taken this long. If the thread slept, up to half of it may have been the wake-up.
  void ended(Duration took) { brief_ = took < longest_ + longest_; }

 private:
  Duration longest_;
  bool brief_ = true;
  Instant rests_until_;
};

}  // namespace urnic::device
