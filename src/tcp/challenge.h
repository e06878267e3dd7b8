// The throttle on challenge ACKs (RFC 5961 7): whatever a stranger sends, it cannot make us send
// more than this. One per host (stack or engine), not per connection.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::tcp {

class ChallengeLimiter {
 public:
  explicit ChallengeLimiter(std::uint32_t count = 10, Duration window = Duration::s(5))
      : count_(count), window_(window) {}

  // May one more be sent at `now`? Counts it if so.
  bool allow(Instant now) {
    if (used_ == 0 || now >= since_ + window_) {
      since_ = now;
      used_ = 0;
    }
    if (used_ >= count_) return false;
    ++used_;
    return true;
  }

 private:
  std::uint32_t count_;
  std::uint32_t used_ = 0;
  Duration window_;
  Instant since_;
};

}  // namespace urnic::tcp
