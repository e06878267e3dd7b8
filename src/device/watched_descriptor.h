// A descriptor beside the port that somebody has to look at now and then: served by one thread at a
// time, without the ownership of the engine.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/time.h"

namespace urnic::engine {

class WatchedDescriptor {
 public:
  void watch(int fd, std::function<void()> service) {
    fd_ = fd;
    service_ = std::move(service);
  }
  // -1: there is none.
  int fd() const { return fd_; }
  // Serves it if it is readable and nobody else does.
  void serve() {
    if (fd_ < 0 || serving_.test_and_set(std::memory_order_acquire)) return;
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, 0) > 0 && service_) service_();
    serving_.clear(std::memory_order_release);
  }
  // The same, not more often than every kPeriod.
  void serve_when_due(Instant now) {
    if (fd_ < 0) return;
    std::int64_t due = next_.load(std::memory_order_relaxed);
    if (now.ns() >= due && next_.compare_exchange_strong(due, (now + kPeriod).ns())) serve();
  }

 private:
  static constexpr Duration kPeriod = Duration::ms(2);
  int fd_ = -1;
  std::function<void()> service_;
  std::atomic<std::int64_t> next_{0};
  std::atomic_flag serving_;
};

}  // namespace urnic::engine
