// The last stage of a faulty wire: how long each frame is under way, and in which order they leave.
// A function of (plan, frames, now, random numbers).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "base/rng.h"
#include "base/time.h"
#include "fault/plan.h"
#include "fault/tcp_frame.h"

namespace urnic::fault {

class DelayLine {
 public:
  // `extra` comes on top of the plan's delay. `in_order`: not before any that is.
  void enter(Frame f, const FaultPlan& plan, Instant now, Duration extra, bool in_order, Rng* rng);
  // Those whose time has come can leave.
  void move_due(Instant now);

  // How long the rate-limited line is busy with what it has.
  Duration wait(Instant now) const {
    return Duration::ns(line_free_ > now.ns() ? line_free_ - now.ns() : 0);
  }

  std::size_t ready() const { return ready_.size(); }
  const Frame& front() const { return ready_.front(); }
  Frame pop();
  // Ready ones included.
  std::size_t size() const { return ready_.size() + waiting_.size(); }
  // Of those that are not ready; never() when there are none.
  Instant next_release() const;

 private:
  // Waiting for their time, by it; the number keeps equal times in order of arrival.
  std::map<std::pair<std::int64_t, std::uint64_t>, Frame> waiting_;
  std::uint64_t arrivals_ = 0;
  std::int64_t line_free_ = 0;     // when the rate-limited line has sent what it has
  std::int64_t last_release_ = 0;  // jitter keeps the order
  std::deque<Frame> ready_;
};

}  // namespace urnic::fault
