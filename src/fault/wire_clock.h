// Where the wrappers of this room get their time. They read no clock themselves: the engine gives a
// real one, the simulator its virtual one.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::fault {

struct WireClock {
  // Monotonic nanoseconds; must not be null.
  std::uint64_t (*now_ns)(void* context) = nullptr;
  void* context = nullptr;
  // The clock advances by itself at the rate of the system's monotonic clock, so that a sleeper can
  // be woken by a timer. A virtual clock leaves this false and whoever moves it asks for
  // FaultControl::next_release.
  bool real = false;

  Instant now() const { return Instant::from_ns(static_cast<std::int64_t>(now_ns(context))); }
};

}  // namespace urnic::fault
