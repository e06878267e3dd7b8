// Readiness of many sockets: reports sockets that have become readable or writable since the last
// report. It is edge-triggered: a report is not repeated until the socket becomes ready again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace urnic::kernel_tcp {

class Poller {
 public:
  struct Ready {
    std::uint64_t tag = 0;
    bool readable = false;  // bytes, a FIN, an error or (listening) a connection
    bool writable = false;
    bool ended = false;  // the readable data includes the peer's FIN or an error
  };

  // The error is one line for the user.
  static Outcome<std::unique_ptr<Poller>, std::string> make();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Reports `fd` under `tag` from now on, beginning with its current readiness. Returns 0 or an
  // errno value.
  int add(int fd, std::uint64_t tag);
  // Call it before `fd` is closed.
  void remove(int fd);
  // Takes at most `max` sockets that have become ready. Never waits.
  unsigned take(Ready* out, unsigned max);
  // Readable (by poll) while there are reports to take.
  int wait_fd() const { return fd_; }

 private:
  Poller() = default;
  int fd_ = -1;
};

}  // namespace urnic::kernel_tcp
