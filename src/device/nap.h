// Time-outs of waits, for ppoll(2).
#pragma once

#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "base/time.h"

namespace urnic::device {

inline constexpr Duration kForEver = Duration::ns(-1);

// The end of a wait of at most `timeout_ms` that begins now (-1: never).
inline Instant deadline_in(int timeout_ms) {
  return timeout_ms < 0 ? Instant::never() : monotonic_now() + Duration::ms(timeout_ms);
}

// The time left until then.
inline Duration left_until(Instant until, Instant now = monotonic_now()) {
  return until.is_never() ? kForEver : std::max(Duration(), until - now);
}

// A time-out in ppoll(2)'s form; null: without limit.
class Nap {
 public:
  explicit Nap(Duration most)
      : for_ever_(most.count_ns() < 0),
        time_{most.count_ns() / 1000000000, most.count_ns() % 1000000000} {}
  const timespec* get() const { return for_ever_ ? nullptr : &time_; }

 private:
  bool for_ever_;
  timespec time_;
};

}  // namespace urnic::device
