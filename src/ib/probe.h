// The requester's probe (S-5): if a response must come and nothing has arrived for two smoothed
// round trips, the oldest unacknowledged packet is sent once more and requests an ACK. The peer's
// response replaces the transport timer, which is often far longer than a round trip: the loss of
// the last packet of a burst, of an ACK, of a NAK or of a repeated packet costs round trips only.
//
// Independent of retries and of the transport timer. Owned by the requester of one queue pair.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "ib/psn.h"

namespace urnic::ib {

class Probe {
 public:
  static constexpr Duration kLeast = Duration::ms(1);
  // Each probe without a response doubles the wait, up to this often, so that a dead peer is not
  // flooded.
  static constexpr std::uint8_t kMostDoublings = 10;

  explicit Probe(bool on) : on_(on) {}

  // ---- round trips
  // A packet that requests an ACK is sent for the first time. One is measured at a time.
  void measure(Psn psn, Instant now) {
    if (!on_ || measuring_) return;
    measuring_ = true;
    measured_ = psn;
    left_ = now;
  }
  // Everything before `una` is answered. A probe does not spoil the measurement: it can only make
  // it too long, while a first estimate that is too short would never be corrected.
  void answered(Psn una, Instant now);
  Duration round_trip() const { return round_trip_; }  // smoothed; zero: not measured yet

  // ---- time
  // A response must come. Leaves a running wait unchanged.
  void start(Instant now) {
    if (due_.is_never() && !wanted_) wait(now);
  }
  // Something has arrived, and more is expected.
  void restart(Instant now) {
    doublings_ = 0;
    wanted_ = false;
    wait(now);
  }
  // No response is expected.
  void stop() {
    doublings_ = 0;
    wanted_ = false;
    due_ = Instant::never();
  }
  // Everything outstanding is sent again; until then neither a probe nor a measurement is needed.
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

  // ---- the probe
  bool wanted() const { return wanted_; }
  // The packet `psn` has been sent as the probe; `end` follows the newest packet sent before it.
  void left(Psn psn, Psn end, Instant now);
  // It could not be sent.
  void skip() { wanted_ = false; }
  // True if an ACK up to exactly `una` shows that packets sent before the probe and after its PSN
  // are lost: the peer has the probed packet and nothing more. Returns true only once.
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
