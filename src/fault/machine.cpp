#include "fault/machine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace urnic::fault::machine {

Outcome<port::Fd, std::string> create_file(const std::string& path) {
  // Non-blocking: a FIFO without a reader is refused below instead of blocking here.
  port::Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!fd) return fail(std::string(std::strerror(errno)));
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return fail(std::string(std::strerror(errno)));
  if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) {
    return fail(std::string("is not a regular file"));
  }
  if (S_ISREG(st.st_mode) && ::ftruncate(fd.get(), 0) != 0) {
    return fail(std::string(std::strerror(errno)));
  }
  return fd;
}

namespace {

// Without it, a write beyond `ulimit -f` ends the process; with it, the write fails. The signal is
// for the thread that writes.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigemptyset(&only_);
    sigaddset(&only_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &only_, &before_);
  }
  ~NoFileSizeSignal() {
    const int error = errno;
    if (sigismember(&before_, SIGXFSZ) == 0) {
      const timespec at_once{};
      while (sigtimedwait(&only_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
      pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    errno = error;
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t only_, before_;
};

}  // namespace

std::string write_all(const port::Fd& file, ByteView bytes) {
  const NoFileSizeSignal blocked;
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (n == 0) {
      return "cannot write";
    } else if (errno != EINTR) {
      return std::strerror(errno);
    }
  }
  return {};
}

port::Fd make_timer() {
  return port::Fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
}

void set_timer(const port::Fd& timer, Duration after) {
  const std::int64_t ns = std::max<std::int64_t>(after.count_ns(), 0);
  itimerspec when{};
  when.it_value.tv_sec = ns / 1000000000;
  when.it_value.tv_nsec = ns % 1000000000;
  timerfd_settime(timer.get(), 0, &when, nullptr);
}

void wait_readable(std::span<const int> fds, std::int64_t ms) {
  std::vector<pollfd> all;
  for (const int fd : fds) all.push_back({fd, POLLIN, 0});
  const std::int64_t longest = 3600 * 1000;
  ::poll(all.data(), all.size(), ms < 0 ? -1 : static_cast<int>(std::min(ms, longest)));
}

}  // namespace urnic::fault::machine
