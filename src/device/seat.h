// Who sleeps on the port: our thread, or a thread of the application that waits for a completion
// anyway and takes the place of ours for so long. What arrives is then one wake-up away from the
// application, not two. Behind its wait the place is kept for it for a moment, so that who comes
// back at once wakes nobody; if it does not, our thread takes it back.
//
// Under the ownership of the engine, but for back(), away() and offered().
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "device/event_queue.h"

namespace urnic::engine {

class Seat {
 public:
  // How long the place is kept, which is how late may be served what arrives then.
  static constexpr Duration kKept = Duration::us(50);

  Seat() = default;
  ~Seat() {
    if (timer_ >= 0) close(timer_);
  }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  // A thread of the application begins to wait, or has waited. One that came back soon is offered
  // the seat.
  void back(Instant now) {
    const Instant left = Instant::from_ns(left_.load(std::memory_order_relaxed));
    returns_.store(now - left < kKept, std::memory_order_relaxed);
  }
  void away(Instant now) { left_.store(now.ns(), std::memory_order_relaxed); }
  bool offered() const { return returns_.load(std::memory_order_relaxed); }

  // False: somebody sits there, or there are no descriptors for it.
  bool sit() {
    if (taken_ || !open()) return false;
    if (lent_) alarm(Duration());
    lent_ = taken_ = true;
    return true;
  }
  // Leaves the seat, which is kept.
  void rise(Instant now) {
    taken_ = false;
    kept_until_ = now + kKept;
    alarm(kKept);
  }
  // Our thread has it again.
  void take_back() {
    taken_ = false;
    alarm(Duration());
    lent_ = false;
  }
  bool lent() const { return lent_; }
  // Nobody came back for it.
  bool deserted(Instant now) const { return lent_ && !taken_ && now >= kept_until_; }

  // Wakes who sits; there when somebody has sat.
  EventFd& bell() { return *bell_; }
  // Readable when the seat has been kept for long enough, until somebody has it again; -1 before
  // anybody sat.
  int timer() const { return timer_; }

 private:
  bool open() {
    if (!bell_ || bell_->get() < 0) bell_.emplace();
    if (timer_ < 0) timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return bell_->get() >= 0 && timer_ >= 0;
  }
  void alarm(Duration in) const {
    itimerspec at{};
    at.it_value.tv_nsec = in.count_ns();
    timerfd_settime(timer_, 0, &at, nullptr);
  }

  std::optional<EventFd> bell_;
  int timer_ = -1;
  bool taken_ = false, lent_ = false;
  Instant kept_until_;
  std::atomic<bool> returns_{false};
  std::atomic<std::int64_t> left_{0};
};

}  // namespace urnic::engine
