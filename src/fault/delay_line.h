// The last stage of a faulty wire: it determines how long each frame is in flight, and in which
// order frames leave. A function of (plan, frames, now, random numbers).
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
  // Adds a frame. `extra` is added to the plan's delay. With `in_order` it leaves after all earlier
  // in-order frames.
  void enter(Frame f, const FaultPlan& plan, Instant now, Duration extra, bool in_order, Rng* rng);
  // Marks the frames whose time has come as ready.
  void move_due(Instant now);

  // How long the rate-limited line is busy with its frames.
  Duration wait(Instant now) const {
    return Duration::ns(line_free_ > now.ns() ? line_free_ - now.ns() : 0);
  }

  std::size_t ready() const { return ready_.size(); }
  const Frame& front() const { return ready_.front(); }
  Frame pop();
  // The number of frames, including ready ones.
  std::size_t size() const { return ready_.size() + waiting_.size(); }
  // The next release time of a frame that is not ready; never() if there are none.
  Instant next_release() const;

 private:
  // Waiting frames, sorted by release time; the number keeps equal times in order of arrival.
  std::map<std::pair<std::int64_t, std::uint64_t>, Frame> waiting_;
  std::uint64_t arrivals_ = 0;
  std::int64_t line_free_ = 0;     // when the rate-limited line will be idle
  std::int64_t last_release_ = 0;  // keeps the order despite jitter
  std::deque<Frame> ready_;
};

}  // namespace urnic::fault
