// The clock that the engine's time is read from.
#pragma once

#include "base/time.h"

namespace urnic::engine {

// CLOCK_MONOTONIC.
Instant monotonic_now();

}  // namespace urnic::engine
