// Readiness of many sockets: which of them have become readable or writable since they were last
// looked at (edges, not levels: what is reported once is not reported again until it happens anew).
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
    bool ended = false;  // the peer's FIN or an error is among what can be read
  };

  // The error is one line for the user.
  static Outcome<std::unique_ptr<Poller>, std::string> make();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // From now on `fd` is reported under `tag`, beginning with what it is ready for already. 0 or an
  // errno value.
  int add(int fd, std::uint64_t tag);
  // Before it is closed.
  void remove(int fd);
  // At most `max` that have become ready. Never waits.
  unsigned take(Ready* out, unsigned max);
  // Readable (poll) while there is something to take.
  int wait_fd() const { return fd_; }

 private:
  Poller() = default;
  int fd_ = -1;
};

}  // namespace urnic::kernel_tcp
