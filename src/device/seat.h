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
#include "device/lookout.h"

namespace urnic::device {

class Seat {
 public:
  // Who comes back so soon is offered the seat, and for so long it is kept at least.
  static constexpr Duration kSoon = Duration::us(50);
  // How long it may be kept, which is how late may be served what arrives then: the alarm is put
  // off only when less than kSoon of it is left, for that is a system call.
  static constexpr Duration kKept = Duration::us(150);

  explicit Seat(Duration lookout = {}) : lookout_(lookout) {}
  ~Seat() {
    if (timer_ >= 0) close(timer_);
  }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  // A thread of the application begins to wait, or has waited. One that came back soon is offered
  // the seat.
  void back(Instant now) {
    const Instant left = Instant::from_ns(left_.load(std::memory_order_relaxed));
    returns_.store(now - left < kSoon, std::memory_order_relaxed);
  }
  void away(Instant now) { left_.store(now.ns(), std::memory_order_relaxed); }
  bool offered() const { return returns_.load(std::memory_order_relaxed); }

  // False: somebody sits there, or there are no descriptors for it. The alarm of the last time is
  // stopped where it would go off meanwhile, as it did.
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
  // The alarm may have gone off. True: nobody came back, and our thread has the seat again.
  bool take_back(Instant now) {
    if (now >= alarm_) stop();
    if (taken_ || !lent_ || now < alarm_) return false;
    lent_ = false;
    return true;
  }
  bool lent() const { return lent_; }

  // Of who sits, before it sleeps.
  Lookout& lookout() { return lookout_; }
  // Wakes who sits; there when somebody has sat.
  EventFd& bell() { return *bell_; }
  // Readable when the seat has been kept for long enough, until it is taken back or kept anew; -1
  // before anybody sat.
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
  Instant since_, alarm_;  // who sits there does; past: it does not go off
  std::atomic<bool> returns_{false};
  std::atomic<std::int64_t> left_{0};
};

}  // namespace urnic::device
