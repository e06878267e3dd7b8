// How long who sits on the port looks out for an arrival before it sleeps. Its answer is often a
// few microseconds away, and to wake a thread on another core that has gone to sleep takes longer
// than that. The core is left to others between two looks, so that a peer on the same one is not
// held up.
//
// Under the ownership of the engine, but for out(), which is of who sits.
#pragma once

#include <poll.h>
#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "base/time.h"

namespace urnic::device {

class Lookout {
 public:
  // Others took the core for so long when it was left to them: there is no core to look out with.
  static constexpr Duration kPutAside = Duration::us(100);
  // Nobody looks out for so long then.
  static constexpr Duration kRest = Duration::ms(100);

  // `longest` 0: never.
  explicit Lookout(Duration longest) : longest_(longest) {}

  // As ppoll(2), for as long as that is promising, and not beyond `end`.
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
  // How long to look out in a wait that begins.
  Duration begin(Instant now) const {
    return brief_ && now >= rests_until_ ? longest_ : Duration();
  }
  // The core was left to others. False: they needed it.
  bool goes_on(Instant before, Instant now) {
    if (now - before < kPutAside) return true;
    rests_until_ = now + kRest;
    return false;
  }
  // A wait has taken so long. Half of one that was slept through may have been the waking.
  void ended(Duration took) { brief_ = took < longest_ + longest_; }

 private:
  Duration longest_;
  bool brief_ = true;
  Instant rests_until_;
};

}  // namespace urnic::device
