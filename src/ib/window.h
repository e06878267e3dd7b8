// How many packets may be in flight, by round trips and by what the network says (S-10): additive
// increase, multiplicative decrease. What closes it, once for all that is in
// flight: a CNP, more than a twentieth of a window lost, a round trip that has grown beyond a
// target; a timeout closes it to the floor. Single losses do not.
//
// The target moves, because others may fill the queue whatever we do: where a cut did not shorten
// the round trips it is lifted, and where packets are lost behind a long queue it is lowered
// (docs/decisions/roce-congestion.md).
//
// Arithmetic on whole numbers, without a clock. Owned by the requester of one queue pair.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace urnic::ib {

class AimdWindow {
 public:
  static constexpr std::uint32_t kFloor = 2;
  // It begins with so many, or a 32nd where that is more; each round doubles it at first.
  static constexpr std::uint32_t kFirst = 32;
  // Queueing that closes it at the least; more on a long way. A process that lost its processor
  // looks like a queue.
  static constexpr Duration kLeastTarget = Duration::us(100);
  static constexpr Duration kMostTarget = Duration::ms(100);

  // `most` packets, 1 or more: what it is when open.
  explicit AimdWindow(std::uint32_t most)
      : most_(most * kOne),
        window_(std::min(most, std::max(kFirst, most / kFirst)) * kOne),
        threshold_(most * kOne) {}

  std::uint32_t packets() const { return window_ / kOne; }

  // ---- what is found
  // What a round was: everything that left in it is answered.
  struct Round {
    Duration trip = Duration::zero();  // zero: unknown
    bool settled = false;              // it began when nothing from before a cut was in flight
    bool quiet = false;                // and nothing was cut meanwhile
    bool limited = false;              // it was the window that held packets back
  };
  // True: it was cut.
  bool round(const Round&, Instant now);
  // A CNP. False: not acted upon, since the queue is not ours.
  bool notified();
  // Losses of more than a twentieth.
  void cut();
  void time_out();
  // A packet is lost, which is no cut.
  void note_loss();

  Duration target() const { return target_; }      // of queueing
  Duration base() const;                           // the shortest round trip lately
  Duration queueing() const { return queueing_; }  // by the newest sample

 private:
  static constexpr std::uint32_t kOne = 256;  // in parts of a packet
  static constexpr Duration kBaseAge = Duration::s(10);

  void measured(Duration trip, Instant now);
  void cut_to(std::uint32_t window);
  void cut_for_length();
  void judge_cut(Duration trip);
  void grow();
  Duration least_target() const { return std::max(kLeastTarget, base() * 2); }
  // Where the queue ends so early.
  Duration shortest_target() const { return std::max(kLeastTarget / 3, base() / 16); }
  std::uint32_t floor() const { return std::min(kFloor * kOne, most_); }

  std::uint32_t most_, window_;
  std::uint32_t threshold_;  // below it a round doubles the window
  // The shortest of the running span and of the one before.
  Duration least_ = Duration::zero(), least_before_ = Duration::zero();
  Instant span_end_ = Instant::never();
  Duration target_ = Duration::zero();  // zero: nothing was measured yet
  Duration queueing_ = Duration::zero();
  Duration cut_at_ = Duration::zero();  // the round trip that the last cut was for; zero: judged
};

}  // namespace urnic::ib
