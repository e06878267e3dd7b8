// The two timers of an RC send queue and their retry counters (the transport's sections on
// acknowledgment timers and RNR): the transport timer detects that no response comes, and the RNR
// wait delays a request for which the peer had no receive. Both are instants; "now" is an argument
// (D1).
//
// Owned by the requester of one queue pair.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::ib {

// Ttr of a Local ACK Timeout code, 5 bits: 4.096 us * 2^code. Code 0: zero, no timer.
Duration ack_timeout(std::uint8_t code);
// The time that an RNR NAK with this timer code, 5 bits, asks to wait: 10 us to 655.36 ms.
Duration rnr_wait(std::uint8_t code);

// One per send queue, not per packet. It runs while an expected response is outstanding: for an
// unacknowledged packet with AckReq, a READ or an ATOMIC.
class TransportTimer {
 public:
  // `least`: shorter timeouts are raised to this, the owner's timer resolution.
  TransportTimer(std::uint8_t code, Duration least);

  bool running() const { return !due_.is_never(); }
  // A response is requested. Leaves a running timer unchanged.
  void start(Instant now) {
    if (!running()) restart(now);
  }
  // A response arrived, and more is expected.
  void restart(Instant now);
  // No response is expected.
  void stop() { due_ = Instant::never(); }

  bool expired(Instant now) const { return due_ <= now && running(); }
  Instant due() const { return due_; }  // never() while it does not run

 private:
  Duration timeout_;  // zero: no timer
  Instant due_ = Instant::never();
};

// The retries left. Both counters have 3 bits; 7 means seven repetitions for the retry counter and
// no limit for the RNR counter.
class RetryCounters {
 public:
  static constexpr std::uint8_t kRnrForEver = 7;

  RetryCounters(std::uint8_t retries, std::uint8_t rnr_retries)
      : retries_(retries & 7), rnr_retries_(rnr_retries & 7) {
    reload();
  }

  // An outstanding request was answered.
  void reload() {
    retries_left_ = retries_;
    rnr_left_ = rnr_retries_;
  }
  // Uses one repetition; false if none is left. A counter of N allows N.
  bool take_retry();
  bool take_rnr_retry();

  std::uint8_t retries_left() const { return retries_left_; }
  std::uint8_t rnr_left() const { return rnr_left_; }

 private:
  std::uint8_t retries_, rnr_retries_;
  std::uint8_t retries_left_ = 0, rnr_left_ = 0;
};

}  // namespace urnic::ib
