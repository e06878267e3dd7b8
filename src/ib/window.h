// The number of packets that may be in flight, from round trip times and signals of the network
// (S-10): additive increase, multiplicative decrease. It is cut once for all packets in flight, by
// a CNP, by a loss of more than a twentieth of a window, or by a round trip time beyond a target. A
// timeout reduces it to the floor. Single losses do not reduce it.
//
// The target moves, because other senders may fill the queue whatever we do: it is raised if a cut
// did not shorten the round trips, and lowered if packets are lost while the queue is long
// (docs/decisions/roce-congestion.md).
//
// Arithmetic on integers, without a clock. Owned by the requester of one queue pair.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace urnic::ib {

class AimdWindow {
 public:
  static constexpr std::uint32_t kFloor = 2;
  // The first window, or a 32nd of the largest if that is more; at first each round doubles it.
  static constexpr std::uint32_t kFirst = 32;
  // The least queueing delay that causes a cut; it is more on long paths. A process that lost its
  // processor looks like a queue.
  static constexpr Duration kLeastTarget = Duration::us(100);
  static constexpr Duration kMostTarget = Duration::ms(100);

  // `most` packets, 1 or more: the size of the open window.
  explicit AimdWindow(std::uint32_t most)
      : most_(most * kOne),
        window_(std::min(most, std::max(kFirst, most / kFirst)) * kOne),
        threshold_(most * kOne) {}

  std::uint32_t packets() const { return window_ / kOne; }

  // ---- events
  // A finished round: everything sent in it is answered.
  struct Round {
    Duration trip = Duration::zero();  // zero: unknown
    bool settled = false;              // it began with nothing in flight from before a cut
    bool quiet = false;                // and there was no cut meanwhile
    bool limited = false;              // the window held packets back
  };
  // True: the window was cut.
  bool round(const Round&, Instant now);
  // A CNP. False: ignored, since others cause the queue.
  bool notified();
  // More than a twentieth is lost.
  void cut();
  void time_out();
  // A packet is lost, without a cut.
  void note_loss();

  Duration target() const { return target_; }      // of queueing
  Duration base() const;                           // the shortest recent round trip
  Duration queueing() const { return queueing_; }  // in the newest sample

 private:
  static constexpr std::uint32_t kOne = 256;  // one packet; sizes are in parts of it
  static constexpr Duration kBaseAge = Duration::s(10);

  void measured(Duration trip, Instant now);
  void cut_to(std::uint32_t window);
  void cut_for_length();
  void judge_cut(Duration trip);
  void grow();
  Duration least_target() const { return std::max(kLeastTarget, base() * 2); }
  // The target where the queue overflows early.
  Duration shortest_target() const { return std::max(kLeastTarget / 3, base() / 16); }
  std::uint32_t floor() const { return std::min(kFloor * kOne, most_); }

  std::uint32_t most_, window_;
  std::uint32_t threshold_;  // below it each round doubles the window
  // The shortest in the running period and in the one before.
  Duration least_ = Duration::zero(), least_before_ = Duration::zero();
  Instant span_end_ = Instant::never();
  Duration target_ = Duration::zero();  // zero: no measurement yet
  Duration queueing_ = Duration::zero();
  // the round trip that caused the last cut; zero: already judged
  Duration cut_at_ = Duration::zero();
};

}  // namespace urnic::ib
