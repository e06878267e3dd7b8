// The clock of the machine. Only rooms that own I/O read it; the core is given the time
// (tools/check-includes).
#pragma once

#include "base/time.h"

namespace urnic {

// CLOCK_MONOTONIC. Safe from any thread and from signal handlers.
Instant monotonic_now();

}  // namespace urnic
