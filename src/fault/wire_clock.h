// The time source of the wrappers in this folder. They read no clock themselves: the engine
// provides a real one, the simulator a virtual one.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::fault {

struct WireClock {
  // Monotonic nanoseconds; must not be null.
  std::uint64_t (*now_ns)(void* context) = nullptr;
  void* context = nullptr;
  // True if the clock advances at the rate of the system's monotonic clock, so that a timer can
  // wake a sleeping thread. A virtual clock leaves this false, and its owner uses
  // FaultControl::next_release to advance it.
  bool real = false;

  Instant now() const { return Instant::from_ns(static_cast<std::int64_t>(now_ns(context))); }
};

}  // namespace urnic::fault
