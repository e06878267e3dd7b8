// Waits for an rsocket's descriptor like a system call on a socket: a signal ends the wait, and the
// thread may be cancelled in it.
#pragma once

#include <errno.h>
#include <poll.h>

#include <chrono>

#include "dropin/restart.h"

namespace urnic::rsockets {

// A short time of polling, in which an answer that is already on its way is found without sleeping.
class Spin {
 public:
  bool goes_on() const { return std::chrono::steady_clock::now() < until_; }

 private:
  static constexpr auto kLength = std::chrono::microseconds(20);
  std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + kLength;
};

// Returns 0, EINTR, or EAGAIN when `timeout_ms` (-1: no limit) has passed.
inline int wait_for(int fd, short events, int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(timeout_ms < 0 ? 0 : timeout_ms);
  for (;;) {
    int left = -1;
    if (timeout_ms >= 0) {
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      left = rest > 0 ? static_cast<int>(rest) : 0;
    }
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, left);
    if (n > 0) return 0;
    if (n == 0) return EAGAIN;
    if (errno != EINTR) return errno;
    if (!dropin::restarts()) return EINTR;
  }
}

}  // namespace urnic::rsockets
