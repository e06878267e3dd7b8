// Helpers shared by the walks over the C calls of the drop-in: time limits, the resources of the
// process, and a destruction that must wait for an acknowledgement.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "support/soon.h"
#include "support/walk.h"

namespace calls_walk {

using urnic::test::agree;
using urnic::test::agree_on;
using urnic::test::Dice;

// A walk that disagrees is repeated many times to find a shorter one. The repetitions use shorter
// time limits, because an event that did not arrive will not arrive later either.
class Patience {
 public:
  static std::chrono::milliseconds now() {
    return std::chrono::milliseconds(is_over_ ? 300 : 20'000);
  }
  static bool waits_for(auto&& holds) {
    if (urnic::test::soon(holds, now())) return true;
    is_over_ = true;
    return false;
  }
  static bool is_readable(int fd) {
    return waits_for([fd] {
      pollfd p{fd, POLLIN, 0};
      return poll(&p, 1, 20) == 1;
    });
  }

 private:
  static inline bool is_over_ = false;
};

inline bool is_readable_now(int fd) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

// 0, or errno of a call that returned -1 (or a null pointer).
inline int error_of(int result) {
  return result == 0 ? 0 : errno;
}
inline int error_of(const void* made) {
  return made != nullptr ? 0 : errno;
}

inline std::size_t entries_of(const char* folder) {
  namespace fs = std::filesystem;
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}
// The first thread that waits in the device's place (docs/progress.md) creates a timer and a bell,
// which stay. They are not counted.
inline std::size_t count_descriptors() {
  namespace fs = std::filesystem;
  std::size_t timers = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const fs::path is = fs::read_symlink(entry.path(), gone);
    if (is.string().find("timerfd") != std::string::npos) ++timers;
  }
  return entries_of("/proc/self/fd") - 2 * timers;
}

// The number after this word in the statistics of the process; -1 if the process does not answer.
class Statistics {
 public:
  // Call before a device is opened: the socket gets a folder of its own.
  static void prepare() {
    char name[] = "/tmp/urnic-walk-XXXXXX";
    if (mkdtemp(name) != nullptr) setenv("XDG_RUNTIME_DIR", name, 1);
  }
  static void clean() { std::filesystem::remove_all(getenv("XDG_RUNTIME_DIR")); }
  static std::string read() {
    const std::string folder = std::string(getenv("XDG_RUNTIME_DIR")) + "/urnic";
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    const std::string path = folder + "/" + std::to_string(getpid()) + ".sock";
    std::strncpy(to.sun_path, path.c_str(), sizeof to.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string text;
    if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
      char piece[4096];
      for (ssize_t n; (n = ::read(fd, piece, sizeof piece)) > 0;) {
        text.append(piece, static_cast<std::size_t>(n));
      }
    }
    close(fd);
    return text;
  }
  // How often the word occurs. Each connection has a "qp_number", and so have the totals.
  static long times(const std::string& text, const std::string& word) {
    long n = 0;
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
    return n;
  }
  static long number(const std::string& text, const std::string& word) {
    const auto at = text.find("\"" + word + "\":");
    return at == std::string::npos ? -1
                                   : std::strtol(text.c_str() + at + word.size() + 3, nullptr, 10);
  }
};

// Resources that a process must release itself.
struct Holdings {
  std::size_t descriptors, threads;
  static Holdings now() { return {count_descriptors(), entries_of("/proc/self/task")}; }
  bool operator==(const Holdings&) const = default;
};

// Waits first: after a walk that disagreed, connections may still be ending.
inline Holdings quiet_holdings() {
  urnic::test::soon([] { return Statistics::times(Statistics::read(), "qp_number") == 1; },
                    std::chrono::seconds(2));
  return Holdings::now();
}

// The walk must have released everything that was not there in `before`.
inline void agree_that_nothing_is_left(const Holdings& before) {
  Holdings now{};
  Patience::waits_for([&] { return (now = Holdings::now()) == before; });
  agree_on(now.descriptors, before.descriptors, "descriptors left");
  agree_on(now.threads, before.threads, "threads left");
  std::string text;
  Patience::waits_for([&] {
    text = Statistics::read();
    return Statistics::number(text, "regions") == 0 && Statistics::times(text, "qp_number") == 1;
  });
  agree_on(Statistics::number(text, "regions"), 0, "regions left");
  agree_on(Statistics::times(text, "qp_number"), 1, "connections and queue pairs left, and one");
}

// `destroy` must wait until `acknowledge` is called; returning earlier is a fault. If it has not
// begun to wait yet, a fault may be missed, but never reported wrongly. `forget` is called after
// that fault, because the event must not be acknowledged any more.
template <class Destroy, class Acknowledge, class Forget>
void destroy_waits(const std::string& what, Destroy destroy, Acknowledge acknowledge,
                   Forget forget) {
  std::atomic<bool> is_done{false};
  std::atomic<long> id{0};
  std::thread t([&] {
    id = syscall(SYS_gettid);
    destroy();
    is_done = true;
  });
  int asleep = 0;
  urnic::test::soon([&] {
    asleep = id != 0 && urnic::test::is_asleep(id) ? asleep + 1 : 0;
    return is_done || asleep == 3;
  });
  const bool too_early = is_done;
  too_early ? forget() : acknowledge();
  t.join();
  agree(!too_early, what + " does not wait for an acknowledgement");
}

}  // namespace calls_walk
