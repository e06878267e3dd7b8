#include "port/memif_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace urnic::port::memif {
namespace {

Fd seqpacket() {
  return Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

std::string because(int error) {
  return std::string(": ") + std::strerror(error);
}

// Held while a server looks whether the address is taken and takes it, so that of two servers
// starting at once one sees the other alive. Lasts microseconds; the file does not stay behind.
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
      // The one before us removed the file when done; then this lock is on a file nobody sees.
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
  bool held() const { return static_cast<bool>(fd_); }
  int error() const { return error_; }

 private:
  std::string path_;
  Fd fd_;
  int error_ = 0;
};

std::string live_server(const Address& a) {
  return "another server is listening on " + a.name() +
         "; use another socket= or role=client to join it";
}

// Makes the path free to bind, or says why it is not.
std::string clear_path(const Address& a) {
  struct stat st {};
  if (lstat(a.name().c_str(), &st) != 0) {
    return errno == ENOENT ? "" : "cannot use " + a.name() + because(errno);
  }
  if (!S_ISSOCK(st.st_mode)) return a.name() + " exists and is not a socket";
  const ConnectAttempt there = connect_to(a);
  switch (there.result) {
    case ConnectResult::kConnected:
    case ConnectResult::kBusy:
      return live_server(a);
    case ConnectResult::kRefused:
      return "cannot use " + a.name() + because(there.error);
    case ConnectResult::kNobody:
      break;
  }
  if (unlink(a.name().c_str()) != 0 && errno != ENOENT) {
    return "cannot replace the dead socket " + a.name() + because(errno);
  }
  return "";
}

}  // namespace

Outcome<Address, std::string> Address::parse(const std::string& name) {
  Address a;
  if (name.empty() || name == "@") return fail(std::string("socket= is needed"));
  if (name.size() >= sizeof(a.un_.sun_path)) {
    return fail("socket=" + name + " is longer than the " +
                std::to_string(sizeof(a.un_.sun_path) - 1) + " bytes a unix socket may have");
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

Outcome<Listener, std::string> Listener::open(const Address& address) {
  Listener l;
  l.fd_ = seqpacket();
  if (!l.fd_) return fail("no socket" + because(errno));

  if (address.abstract()) {
    if (bind(l.fd_.get(), address.get(), address.size()) != 0) {
      return fail(errno == EADDRINUSE ? live_server(address)
                                      : "cannot listen on " + address.name() + because(errno));
    }
  } else {
    const StartLock lock(address.name());
    if (!lock.held()) {
      return fail("cannot create " + address.name() + ".lock" + because(lock.error()));
    }
    if (std::string wrong = clear_path(address); !wrong.empty()) return fail(wrong);
    if (bind(l.fd_.get(), address.get(), address.size()) != 0) {
      return fail("cannot listen on " + address.name() + because(errno));
    }
    l.path_ = address.name();
    struct stat st {};
    if (lstat(l.path_.c_str(), &st) == 0) l.inode_ = st.st_ino;
    // Before the lock goes: a socket that is bound but does not listen yet looks dead.
    if (listen(l.fd_.get(), 16) != 0) return fail("cannot listen" + because(errno));
    return l;
  }
  if (listen(l.fd_.get(), 16) != 0) return fail("cannot listen" + because(errno));
  return l;
}

Fd Listener::accept() const {
  return Fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

void Listener::remove_file() {
  struct stat st {};
  if (!path_.empty() && lstat(path_.c_str(), &st) == 0 && st.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

ConnectAttempt connect_to(const Address& address) {
  ConnectAttempt a;
  a.fd = seqpacket();
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
      a.result = ConnectResult::kBusy;
      break;
    default:
      a.result = ConnectResult::kRefused;
  }
  return a;
}

bool send_message(int socket, const Message& m) {
  iovec iov{const_cast<std::uint8_t*>(m.bytes.data()), m.bytes.size()};
  msghdr h{};
  h.msg_iov = &iov;
  h.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (m.fd >= 0) {
    h.msg_control = control.data();
    h.msg_controllen = control.size();
    cmsghdr* c = CMSG_FIRSTHDR(&h);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &m.fd, sizeof(int));
  }
  return sendmsg(socket, &h, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(kMessageSize);
}

Received receive_message(int socket, Message* m, Fd* fd) {
  *m = {};
  fd->reset();
  // One byte more than a message, to notice longer ones.
  std::array<std::uint8_t, kMessageSize + 1> bytes{};
  iovec iov{bytes.data(), bytes.size()};
  // Room for more descriptors than a message may carry: what does not fit the kernel drops.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
  msghdr h{};
  h.msg_iov = &iov;
  h.msg_iovlen = 1;
  h.msg_control = control.data();
  h.msg_controllen = control.size();
  const ssize_t n = recvmsg(socket, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) {
    return errno == EAGAIN || errno == EINTR ? Received::kNothing : Received::kEnd;
  }
  unsigned descriptors = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&h); c != nullptr; c = CMSG_NXTHDR(&h, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int one;
      std::memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof one);
      fd->reset(one);  // owns the last, closes the others
      ++descriptors;
    }
  }
  if (n == 0) return Received::kEnd;
  if (n != static_cast<ssize_t>(kMessageSize) || descriptors > 1 ||
      (h.msg_flags & MSG_CTRUNC) != 0) {
    fd->reset();
    return Received::kMalformed;
  }
  std::memcpy(m->bytes.data(), bytes.data(), kMessageSize);
  return Received::kMessage;
}

bool same_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == geteuid() || peer.uid == 0;
}

}  // namespace urnic::port::memif
