#include "port/unix_address.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <cstddef>
#include <cstring>

namespace urnic::port {
namespace {

constexpr int kBacklog = 16;

std::string because(int error) {
  return std::string(": ") + std::strerror(error);
}

Fd new_socket(int type) {
  return Fd(socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Held while a process checks whether the address is in use and takes it, so that of two processes
// starting at once, one sees the other. Held for microseconds; the lock file is then removed.
class StartLock {
 public:
  explicit StartLock(const std::string& socket_path) : path_(socket_path + ".lock") {
    for (int attempt = 0; attempt < 100; ++attempt) {
      Fd fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      if (!fd) {
        error_ = errno;
        return;
      }
      if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        const timespec pause{0, 10'000'000};
        nanosleep(&pause, nullptr);
        continue;
      }
      // The previous holder removes the file when done; then our lock is on a deleted file.
      struct stat mine {
      }, there{};
      if (fstat(fd.get(), &mine) == 0 && stat(path_.c_str(), &there) == 0 &&
          mine.st_ino == there.st_ino) {
        fd_ = std::move(fd);
        return;
      }
    }
    error_ = EBUSY;
  }
  ~StartLock() {
    if (fd_) unlink(path_.c_str());
  }
  StartLock(const StartLock&) = delete;
  StartLock& operator=(const StartLock&) = delete;
  bool held() const { return static_cast<bool>(fd_); }
  int error() const { return error_; }

 private:
  std::string path_;
  Fd fd_;
  int error_ = 0;
};

// Removes a stale socket so that the path can be bound, or returns the reason why it is not free.
std::string clear_path(const UnixAddress& a, int type, const std::string& taken) {
  struct stat st {};
  if (lstat(a.name().c_str(), &st) != 0) {
    return errno == ENOENT ? "" : "cannot use " + a.name() + because(errno);
  }
  if (!S_ISSOCK(st.st_mode)) return a.name() + " exists but is not a socket; use another path";
  const ConnectAttempt there = connect_to(a, type);
  switch (there.result) {
    case ConnectResult::kConnected:
    case ConnectResult::kBusy:
      return taken;
    case ConnectResult::kRefused:
      return "cannot use " + a.name() + because(there.error);
    case ConnectResult::kNobody:
      break;
  }
  if (unlink(a.name().c_str()) != 0 && errno != ENOENT) {
    return "cannot remove the stale socket " + a.name() + because(errno);
  }
  return "";
}

}  // namespace

Outcome<UnixAddress, std::string> UnixAddress::parse(const std::string& name, const char* key) {
  UnixAddress a;
  if (name.empty() || name == "@") return fail(std::string(key) + "= is required");
  if (name.size() >= sizeof(a.un_.sun_path)) {
    return fail(std::string(key) + "=" + name + ": the name of a unix socket must be at most " +
                std::to_string(sizeof(a.un_.sun_path) - 1) + " bytes");
  }
  a.name_ = name;
  a.un_.sun_family = AF_UNIX;
  std::memcpy(a.un_.sun_path, name.data(), name.size());
  a.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (a.abstract()) {
    a.un_.sun_path[0] = '\0';
  } else {
    a.size_ += 1;  // the terminating zero
  }
  return a;
}

ConnectAttempt connect_to(const UnixAddress& address, int type) {
  ConnectAttempt a;
  a.fd = new_socket(type);
  if (!a.fd) {
    a.error = errno;
    a.result = ConnectResult::kRefused;
    return a;
  }
  if (::connect(a.fd.get(), address.get(), address.size()) == 0) {
    a.result = ConnectResult::kConnected;
    return a;
  }
  a.error = errno;
  a.fd.reset();
  switch (a.error) {
    case ENOENT:
    case ECONNREFUSED:
      a.result = ConnectResult::kNobody;
      break;
    case EAGAIN:
    case EPERM:  // a datagram socket connected to another peer: its owner is alive
      a.result = ConnectResult::kBusy;
      break;
    default:
      a.result = ConnectResult::kRefused;
  }
  return a;
}

Outcome<BoundSocket, std::string> BoundSocket::open(const UnixAddress& address, int type,
                                                    const std::string& taken, mode_t mode) {
  BoundSocket s;
  s.fd_ = new_socket(type);
  if (!s.fd_) return fail("cannot create a unix socket" + because(errno));
  // A socket that is bound but not listening yet looks dead, so both steps happen under the lock.
  const auto take = [&]() -> std::string {
    // The socket has no file yet: the file is created with these rights and never has more.
    if (!address.abstract() && fchmod(s.fd_.get(), mode) != 0) {
      return "cannot lock " + address.name() + because(errno);
    }
    if (bind(s.fd_.get(), address.get(), address.size()) != 0) {
      return errno == EADDRINUSE ? taken : "cannot listen on " + address.name() + because(errno);
    }
    if (type != SOCK_DGRAM && listen(s.fd_.get(), kBacklog) != 0) {
      return "cannot listen on " + address.name() + because(errno);
    }
    return "";
  };
  if (address.abstract()) {
    if (std::string wrong = take(); !wrong.empty()) return fail(wrong);
    return s;
  }
  const StartLock lock(address.name());
  if (!lock.held())
    return fail("cannot create " + address.name() + ".lock" + because(lock.error()));
  if (std::string wrong = clear_path(address, type, taken); !wrong.empty()) return fail(wrong);
  if (std::string wrong = take(); !wrong.empty()) return fail(wrong);
  s.path_ = address.name();
  struct stat st {};
  if (lstat(s.path_.c_str(), &st) == 0) s.inode_ = st.st_ino;
  if ((st.st_mode & 0777) != mode && chmod(s.path_.c_str(), mode) != 0) {
    return fail("cannot set the permissions of " + address.name() + because(errno));
  }
  return s;
}

void BoundSocket::remove_file() {
  struct stat st {};
  if (!path_.empty() && lstat(path_.c_str(), &st) == 0 && st.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

}  // namespace urnic::port
