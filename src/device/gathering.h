// Sends that an application posts one after the other, without a poll between them, leave together:
// one system call carries them, or one burst of frames with few cache lines of the peer's, and
// small FPDUs share segments. The first goes at once, so that a program that posts and polls in
// turn does not wait. Later ones are kept until the application polls, until they are many or old,
// or until one is so large that gathering has no benefit.
//
// Used only for an application that polls or posts all the time (PollingHabit, PostingHabit). When
// it stops, our thread, which is watching it, sends what is kept; without a thread the next call
// does. Needs the engine's ownership.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::device {

class Gathering {
 public:
  // bound: posted requests gathered to leave together; beyond: they are sent; test:
  // Gathering.ManyAreNotKept
  static constexpr std::uint32_t kMost = 64;      // requests of one queue pair
  static constexpr std::uint32_t kLarge = 16384;  // bytes of a request that goes at once
  static constexpr unsigned kDoorbells = 64;      // of all queue pairs
  static constexpr unsigned kLookEvery = 8;       // requests
  static constexpr Duration kLongest = Duration::us(20);

  // Handles a doorbell of a queue pair with `requests` requests that have not started, the newest
  // of `bytes`. True: the doorbell is kept. False: everything is sent now.
  bool keeps(std::uint32_t requests, std::uint32_t bytes, Instant now) {
    if ((!follows_ && !several_) || bytes >= kLarge || requests >= kMost) return false;
    if (kept_ == 0) since_ = now;
    if (kept_ == kDoorbells || now - since_ > kLongest) return false;
    ++kept_;
    return true;
  }
  // True if the post of request number `request` must ask keeps(), although a doorbell of its queue
  // pair is kept already. Any thread.
  static bool looks(std::uint32_t request, std::uint32_t bytes) {
    return request % kLookEvery == 0 || bytes >= kLarge;
  }
  bool any() const { return kept_ != 0; }
  // `requests` were sent, together with all that were kept.
  void sent(std::uint32_t requests) {
    kept_ = 0;
    follows_ = true;
    since_poll_ += requests;
  }
  // The application polls, and what was kept has been sent: it has finished posting.
  void polled() {
    several_ = since_poll_ > 1;
    since_poll_ = 0;
    follows_ = false;
  }

 private:
  unsigned kept_ = 0;             // doorbells
  std::uint32_t since_poll_ = 0;  // requests sent
  bool follows_ = false;          // a request was sent since the last poll
  bool several_ = false;          // more than one was sent between the two polls before
  Instant since_;
};

}  // namespace urnic::device
