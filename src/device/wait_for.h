// The loop of calls in which a program's thread waits for something from the engine.
#pragma once

#include <optional>

#include "device/driver.h"
#include "device/nap.h"

namespace urnic::device {

// Waits until look() returns an answer, at most `timeout_ms` (-1: without limit). False on
// time-out, and in a forked child.
//
// look() returns the answer, or nothing yet. sleep(most, driven) sleeps until there may be
// something new, at most `most`; `driven`: a thread of the device drives the engine meanwhile.
template <class Look, class Sleep>
bool wait_for(Driver& driver, int timeout_ms, Look&& look, Sleep&& sleep) {
  constexpr Duration kNap = Duration::ms(1);  // if no other thread drives: poll and sleep in turn
  const Instant until = deadline_in(timeout_ms);
  for (;;) {
    if (driver.inherited()) return false;
    if (const std::optional<bool> answer = look()) return *answer;
    const Instant now = monotonic_now();
    if (now >= until) return false;
    if (driver.has_thread()) {
      sleep(left_until(until, now), true);
    } else if (!driver.app_poll()) {
      sleep(kNap, false);
    }
  }
}

}  // namespace urnic::device
