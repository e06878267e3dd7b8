// Limits challenge ACKs (RFC 5961 7): no segment that a stranger sends can cause more of them.
// There is one limiter per connection, so that an attacker cannot learn from the replies on its own
// connection what was sent on another (with one counter per host, blind attackers could find out
// whether they had hit the window, CVE-2016-5696). A share of each window's budget, chosen by a
// secret, is left out.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::tcp {

class ChallengeLimiter {
 public:
  // bound: challenge ACKs of a connection; limit: 10 in 5 s, less a random share; beyond: none is
  // sent, counted (`challenge_acks_withheld`); test:
  // ChallengeLimiter.WithoutAKeyTenPerFiveSeconds_RFC5961_7,
  // Forged.ChallengesAreLimitedPerConnectionAndCounted_RFC5961_7
  static constexpr Duration kWindow = Duration::s(5);

  // Returns true if one more may be sent at `now`, and counts it. Allows at most `most` in a
  // window, and at least half of that. `key`: the secret of this connection; 0: always `most`.
  bool allow(std::uint32_t most, std::uint64_t key, Instant now) {
    if (used_ == 0 || now >= since_ + kWindow) {
      since_ = now;
      used_ = 0;
      const std::uint64_t share = key == 0 ? 0 : mix(key ^ static_cast<std::uint64_t>(now.ns()));
      limit_ = most - static_cast<std::uint32_t>(share % (most / 2 + 1));
    }
    if (used_ >= limit_) return false;
    ++used_;
    return true;
  }

 private:
  // The finalizer of splitmix64: every bit of the key affects every bit of the result.
  static constexpr std::uint64_t mix(std::uint64_t v) {
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ULL;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebULL;
    return v ^ (v >> 31);
  }

  std::uint32_t used_ = 0, limit_ = 0;
  Instant since_;
};

}  // namespace urnic::tcp
