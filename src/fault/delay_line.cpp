#include "fault/delay_line.h"

#include <algorithm>

namespace urnic::fault {

void DelayLine::enter(Frame f, const FaultPlan& plan, Instant now, Duration extra, bool in_order,
                      Rng* rng) {
  std::int64_t at = now.ns();
  if (plan.rate_bps != 0) {
    const auto bits = static_cast<unsigned __int128>(f.bytes.size()) * 8;
    line_free_ =
        std::max(line_free_, at) + static_cast<std::int64_t>(bits * 1000000000u / plan.rate_bps);
    at = line_free_;
  }
  at += (plan.delay + extra).count_ns();
  if (plan.jitter > Duration()) {
    at += static_cast<std::int64_t>(
        rng->below(static_cast<std::uint64_t>(plan.jitter.count_ns()) + 1));
  }
  if (in_order) {
    at = std::max(at, last_release_);
    last_release_ = at;
  }
  if (at <= now.ns() && waiting_.empty()) {
    ready_.push_back(std::move(f));
  } else {
    waiting_.emplace(std::pair(at, arrivals_++), std::move(f));
  }
}

void DelayLine::move_due(Instant now) {
  while (!waiting_.empty() && waiting_.begin()->first.first <= now.ns()) {
    ready_.push_back(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
}

Frame DelayLine::pop() {
  Frame f = std::move(ready_.front());
  ready_.pop_front();
  return f;
}

Instant DelayLine::next_release() const {
  return waiting_.empty() ? Instant::never() : Instant::from_ns(waiting_.begin()->first.first);
}

}  // namespace urnic::fault
