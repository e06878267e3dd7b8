// The clock of the machine. Only folders that do I/O read it; the core receives the time as an
// argument (tools/check-includes).
#pragma once

#include "base/time.h"

namespace urnic {

// CLOCK_MONOTONIC. Safe from any thread and from signal handlers.
Instant monotonic_now();

}  // namespace urnic
