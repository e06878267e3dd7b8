// The two clocks of an RC send queue and what each may cost (the transport's sections on
// acknowledgment timers and RNR): the transport timer finds that nothing comes back, the RNR wait
// puts off what the peer had no receive for. Both are instants; "now" is an argument (D1).
//
// Owned by the requester of one queue pair.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::ib {

// Ttr of a Local ACK Timeout code, 5 bits: 4.096 us * 2^code. Code 0: zero, there is no timer.
Duration ack_timeout(std::uint8_t code);
// How long an RNR NAK with this timer code, 5 bits, asks to wait: 10 us to 655.36 ms.
Duration rnr_wait(std::uint8_t code);

// One for each send queue, not for each packet. It runs while an expected response is outstanding:
// an unacknowledged packet with AckReq, a READ or an ATOMIC.
class TransportTimer {
 public:
  // `least`: shorter timeouts than the owner can tell apart are lengthened to it.
  TransportTimer(std::uint8_t code, Duration least);

  bool running() const { return !due_.is_never(); }
  // An expected response is asked for. Leaves a running timer as it is.
  void start(Instant now) {
    if (!running()) restart(now);
  }
  // Something came back, and more is expected.
  void restart(Instant now);
  // Nothing is expected.
  void stop() { due_ = Instant::never(); }

  bool expired(Instant now) const { return due_ <= now && running(); }
  Instant due() const { return due_; }  // never() while it does not run

 private:
  Duration timeout_;  // zero: there is no timer
  Instant due_ = Instant::never();
};

// What may still be tried. Both counters are of 3 bits; 7 is seven repetitions for the one and no
// limit for the other.
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
  // One more repetition; false when they are used up. For N as loaded: N times.
  bool take_retry();
  bool take_rnr_retry();

  std::uint8_t retries_left() const { return retries_left_; }
  std::uint8_t rnr_left() const { return rnr_left_; }

 private:
  std::uint8_t retries_, rnr_retries_;
  std::uint8_t retries_left_ = 0, rnr_left_ = 0;
};

}  // namespace urnic::ib
