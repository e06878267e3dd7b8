// The throttle on challenge ACKs (RFC 5961 7): whatever a stranger sends, it cannot make us send
// more than this. One per connection, so that nobody learns from the answers to his own segments
// what was sent to another's (one counter for a host told blind attackers whether they had hit the
// window, CVE-2016-5696); and of each window's budget a share is left out that only a secret tells.
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

  // May one more be sent at `now`? Counts it if so. At most `most` in a window, at least half of
  // it; `key`: secret, of this connection. 0: always `most`.
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
  // The finalizer of splitmix64: every bit of the key counts in every bit of the result.
  static constexpr std::uint64_t mix(std::uint64_t v) {
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ULL;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebULL;
    return v ^ (v >> 31);
  }

  std::uint32_t used_ = 0, limit_ = 0;
  Instant since_;
};

}  // namespace urnic::tcp
