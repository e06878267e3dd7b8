// The requester's probe (S-5): when a response must come and nothing has come for two smoothed
// round trips, the oldest unacknowledged packet leaves once more and asks for an ACK. What the
// peer says to it replaces the transport timer, which is often far longer than a round trip: the
// loss of the last packet of a burst, of an ACK, of a NAK or of a repeated packet costs round
// trips.
//
// Knows nothing of retries and of the transport timer, and neither knows of it. Owned by the
// requester of one queue pair.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "ib/psn.h"

namespace urnic::ib {

class Probe {
 public:
  static constexpr Duration kLeast = Duration::ms(1);
  // Each probe that nothing came for doubles the wait, so often: a dead peer is not flooded.
  static constexpr std::uint8_t kMostDoublings = 10;

  explicit Probe(bool on) : on_(on) {}

  // ---- round trips
  // A packet that asks, never sent before, leaves. One is measured at a time.
  void measure(Psn psn, Instant now) {
    if (!on_ || measuring_) return;
    measuring_ = true;
    measured_ = psn;
    left_ = now;
  }
  // Everything before `una` is answered. A probe does not spoil the measurement: it can only make
  // it too long, while a first estimate that is too short would never be mended.
  void answered(Psn una, Instant now);
  Duration round_trip() const { return round_trip_; }  // smoothed; zero: none was measured

  // ---- when
  // A response must come. Leaves a running wait as it is.
  void start(Instant now) {
    if (due_.is_never() && !wanted_) wait(now);
  }
  // Something has come, and more is expected.
  void restart(Instant now) {
    doublings_ = 0;
    wanted_ = false;
    wait(now);
  }
  // Nothing is expected.
  void stop() {
    doublings_ = 0;
    wanted_ = false;
    due_ = Instant::never();
  }
  // All that is outstanding leaves again, which needs no probe before it has, and no measurement.
  void go_back() {
    wanted_ = false;
    due_ = Instant::never();
    measuring_ = false;
    probed_ = false;
  }

  Instant due() const { return due_; }
  void on_time(Instant now) {
    if (due_ > now || due_.is_never()) return;
    due_ = Instant::never();
    wanted_ = true;
  }

  // ---- what
  bool wanted() const { return wanted_; }
  // The packet `psn` has left as the probe; `end` lies behind the newest that left before it.
  void left(Psn psn, Psn end, Instant now);
  // It could not leave.
  void skip() { wanted_ = false; }
  // Whether an ACK up to `una`, and no further, says that what left before the probe and behind it
  // is lost: the peer has what was probed and nothing more. Says so once.
  bool shows_loss(Psn una);

 private:
  void wait(Instant now) {
    if (on_) due_ = now + std::max(kLeast, round_trip_ * 2) * (std::int64_t{1} << doublings_);
  }

  bool on_, wanted_ = false, measuring_ = false, probed_ = false;
  std::uint8_t doublings_ = 0;
  Psn measured_, probe_, end_;
  Instant left_, due_ = Instant::never();
  Duration round_trip_ = Duration::zero();
};

}  // namespace urnic::ib
