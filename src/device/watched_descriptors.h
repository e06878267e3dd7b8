// Descriptors besides the port that must be checked now and then: served by one thread at a time,
// without the ownership of the engine.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/time.h"
#include "device/activity_timer.h"

namespace urnic::device {

class WatchedDescriptors {
 public:
  static constexpr unsigned kMost = 3;  // statistics, changes of addresses, activity

  // Call before the first serve(); no more than kMost.
  void watch(int fd, std::function<void()> service) {
    watched_[number_++] = {fd, std::move(service)};
  }
  // Calls `service` when `distance` has passed since the engine became active; it returns the
  // distance of the next time. Without a descriptor it is never called.
  void watch_activity(Duration distance, std::function<Duration()> service) {
    if (!activity_.open(distance)) return;
    watch(activity_.fd(), [this, service = std::move(service)] {
      activity_.stop();
      activity_.set_distance(service());
    });
  }
  // Needs the ownership of the engine.
  void active() { activity_.active(); }
  // For poll(): writes one entry for each, up to kMost, and returns how many.
  unsigned add_to(pollfd* fds) const {
    for (unsigned i = 0; i < number_; ++i) fds[i] = {watched_[i].fd, POLLIN, 0};
    return number_;
  }
  // Serves the readable ones, unless another thread is serving.
  void serve() {
    if (number_ == 0 || serving_.test_and_set(std::memory_order_acquire)) return;
    pollfd fds[kMost];
    const unsigned n = add_to(fds);
    if (::poll(fds, n, 0) > 0) {
      for (unsigned i = 0; i < n; ++i) {
        if (fds[i].revents != 0) watched_[i].service();
      }
    }
    serving_.clear(std::memory_order_release);
  }
  // Calls serve(), but not more often than every kPeriod.
  void serve_when_due(Instant now) {
    if (number_ == 0) return;
    std::int64_t due = next_.load(std::memory_order_relaxed);
    if (now.ns() >= due && next_.compare_exchange_strong(due, (now + kPeriod).ns())) serve();
  }

 private:
  static constexpr Duration kPeriod = Duration::ms(2);
  struct Watched {
    int fd = -1;
    std::function<void()> service;
  };
  ActivityTimer activity_;
  std::array<Watched, kMost> watched_;
  unsigned number_ = 0;
  std::atomic<std::int64_t> next_{0};
  std::atomic_flag serving_;
};

}  // namespace urnic::device
