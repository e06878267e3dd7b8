// The seat: the place of the one thread that sleeps on the port. It is our thread, or an
// application thread that waits for a completion anyway and takes the place of ours meanwhile. Then
// the application gets an arrival after one wake-up instead of two. After its wait the seat is kept
// for the application for a moment, so that if it comes back at once, no thread has to be woken;
// otherwise our thread takes the seat back.
//
// Needs the ownership of the engine, except for back(), away() and offered().
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "device/event_queue.h"
#include "device/lookout.h"

namespace urnic::device {

class Seat {
 public:
  // A thread that comes back within this time is offered the seat, which is kept at least this
  // long.
  static constexpr Duration kSoon = Duration::us(50);
  // How long the seat may be kept, which is also the longest delay of an arrival meanwhile. The
  // alarm is only postponed when less than kSoon of it is left, because that is a system call.
  static constexpr Duration kKept = Duration::us(150);

  explicit Seat(Duration lookout = {}) : lookout_(lookout) {}
  ~Seat() {
    if (timer_ >= 0) close(timer_);
  }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  // An application thread begins to wait, or has waited. A thread that came back soon is offered
  // the seat.
  void back(Instant now) {
    const Instant left = Instant::from_ns(left_.load(std::memory_order_relaxed));
    returns_.store(now - left < kSoon, std::memory_order_relaxed);
  }
  void away(Instant now) { left_.store(now.ns(), std::memory_order_relaxed); }
  bool offered() const { return returns_.load(std::memory_order_relaxed); }

  // False: the seat is taken, or no descriptor is left. If an earlier sit lasted long, the old
  // alarm could fire during this one, so it is stopped.
  bool sit(Instant now) {
    if (taken_ || !open()) return false;
    if (lent_ && sits_long_) stop();
    lent_ = taken_ = true;
    since_ = now;
    return true;
  }
  // Leaves the seat, which is kept.
  void rise(Instant now) {
    taken_ = false;
    sits_long_ = now - since_ >= kSoon;
    lookout_.ended(now - since_);
    if (alarm_ < now + kSoon) set(now);
  }
  // The alarm may have fired. True: no thread came back, and our thread has the seat again.
  bool take_back(Instant now) {
    if (now >= alarm_) stop();
    if (taken_ || !lent_ || now < alarm_) return false;
    lent_ = false;
    return true;
  }
  bool lent() const { return lent_; }

  // Used by the thread in the seat, before it sleeps.
  Lookout& lookout() { return lookout_; }
  // Wakes the thread in the seat; valid once a thread has sat.
  EventFd& bell() { return *bell_; }
  // Readable when the seat has been kept long enough, until it is taken back or kept anew; -1
  // before the first sit.
  int timer() const { return timer_; }

 private:
  bool open() {
    if (!bell_ || bell_->get() < 0) bell_.emplace();
    if (timer_ < 0) timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return bell_->get() >= 0 && timer_ >= 0;
  }
  void set(Instant now) {
    alarm_ = now + kKept;
    set_timer(kKept);
  }
  void stop() {
    alarm_ = Instant();
    set_timer(Duration());
  }
  void set_timer(Duration in) const {
    itimerspec at{};
    at.it_value.tv_nsec = in.count_ns();
    timerfd_settime(timer_, 0, &at, nullptr);
  }

  Lookout lookout_;
  std::optional<EventFd> bell_;
  int timer_ = -1;
  bool taken_ = false, lent_ = false, sits_long_ = false;
  Instant since_, alarm_;  // start of the present sit; time of the alarm, in the past if it is off
  std::atomic<bool> returns_{false};
  std::atomic<std::int64_t> left_{0};
};

}  // namespace urnic::device
