#include "base/clock.h"

#include <time.h>

#include <cstdint>

namespace urnic {

Instant monotonic_now() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return Instant::from_ns(static_cast<std::int64_t>(ts.tv_sec) * 1000000000 + ts.tv_nsec);
}

}  // namespace urnic
