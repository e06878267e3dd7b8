// A rate limit driven by "now": bursts of up to `burst` events, `per_second` on average.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace urnic {

class TokenBucket {
 public:
  // Rates in events; both >= 1.
  TokenBucket(std::uint32_t per_second, std::uint32_t burst)
      : cost_(Duration::s(1) / static_cast<std::int64_t>(std::max(per_second, 1u))),
        depth_(cost_ * static_cast<std::int64_t>(std::max(burst, 1u))) {}

  // True if one more event may happen at `now`, which is then counted. An earlier `now` than before
  // gains nothing.
  bool take(Instant now) {
    if (!has(now)) return false;
    full_at_ = std::max(full_at_, now) + cost_;
    return true;
  }
  // True if take() would return true; changes nothing.
  bool has(Instant now) const { return std::max(full_at_, now) - now <= depth_ - cost_; }

 private:
  // Stored as the time at which the bucket will be full again: one number without fractions.
  Duration cost_, depth_;
  Instant full_at_;
};

}  // namespace urnic
