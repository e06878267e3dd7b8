// Sends that an application posts one after the other, without a poll between them, leave together
// over the kernel's TCP: one system call carries them instead of one each. The first goes at once,
// so nobody waits who posts and polls in turn; those behind it are kept until the application
// polls, until they are many, or old, or one is so large that nothing is gained.
//
// Only of an application that polls all the time (PollingHabit) and is watched: when it stops, the
// thread finds what is kept with everything else. Under the engine's ownership.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::device {

class Gathering {
 public:
  // bound: posted requests gathered to leave together; beyond: they are sent; test:
  // Gathering.ManyAreNotKept
  static constexpr std::uint32_t kMost = 64;     // requests of one queue pair
  static constexpr std::uint32_t kLarge = 4096;  // bytes of one that goes at once
  static constexpr unsigned kDoorbells = 64;     // of all queue pairs
  static constexpr Duration kLongest = Duration::us(20);

  // A doorbell of a queue pair with so many `requests` that have not begun, the newest of `bytes`.
  // True: it is kept. Else everything goes now.
  bool keeps(std::uint32_t requests, std::uint32_t bytes, Instant now) {
    if (!follows_ || bytes >= kLarge || requests >= kMost) return false;
    if (kept_ == 0) since_ = now;
    if (kept_ == kDoorbells || now - since_ > kLongest) return false;
    ++kept_;
    return true;
  }
  bool any() const { return kept_ != 0; }
  // A doorbell was answered, and all that were kept with it.
  void sent() {
    kept_ = 0;
    follows_ = true;
  }
  // The application polls: it has posted what it had to post.
  void polled() { follows_ = false; }

 private:
  unsigned kept_ = 0;     // doorbells
  bool follows_ = false;  // something went since the last poll
  Instant since_;
};

}  // namespace urnic::device
