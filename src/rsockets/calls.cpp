// The calls that create, connect, wait for and close rsockets.
#include "rsockets/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdarg>

#include "dropin/errors.h"
#include "rsockets/raw.h"
#include "rsockets/socket.h"
#include "rsockets/wait.h"

namespace urnic::rsockets {
namespace {

using dropin::failed;
using dropin::guarded;

// Converts an errno value into the result of a call that returns 0 or -1.
int answer(int error) {
  return error == 0 ? 0 : failed(error);
}

void look_at(const pollfd& p, bool sleeps) {
  if (const auto s = Table::get().find(p.fd)) s->look((p.events & POLLOUT) != 0, sleeps);
}

void show_broken(pollfd& p) {
  if ((p.revents & POLLHUP) == 0) return;
  const auto s = Table::get().find(p.fd);
  if (s != nullptr && s->error(false) != 0) p.revents |= POLLERR;
}

bool has_rsocket(const pollfd* fds, nfds_t n) {
  for (nfds_t i = 0; i < n; ++i) {
    if (Table::kind(fds[i].fd) == Kind::rsocket) return true;
  }
  return false;
}

void look_at_all(const pollfd* fds, nfds_t n, bool sleeps) {
  guarded(
      [&] {
        for (nfds_t i = 0; i < n; ++i) look_at(fds[i], sleeps);
        return 0;
      },
      0);
}

// Returns the number of descriptors that are ready now, or -1.
int poll_now(pollfd* fds, nfds_t n) {
  look_at_all(fds, n, false);
  return ::poll(fds, n, 0);
}

int made(int type, std::shared_ptr<Socket> socket) {
  const int fd = socket->fd();
  if ((type & SOCK_CLOEXEC) != 0) raw::control(fd, F_SETFD, FD_CLOEXEC);
  if ((type & SOCK_NONBLOCK) != 0) {
    raw::control(fd, F_SETFL, O_RDWR | O_NONBLOCK);
    socket->non_blocking = true;
  }
  return Table::get().add(fd, std::move(socket)) ? fd : failed(EMFILE);
}

}  // namespace

std::shared_ptr<Socket> lookup(int fd) {
  const Kind kind = Table::kind(fd);
  auto s = kind == Kind::rsocket ? Table::get().find(fd) : nullptr;
  if (s == nullptr) errno = kind == Kind::inherited ? EOPNOTSUPP : EBADF;
  return s;
}

}  // namespace urnic::rsockets

using namespace urnic::rsockets;  // the exported functions are in the global namespace
using urnic::dropin::failed;
using urnic::dropin::guarded;

int urnic_rsocket(int domain, int type, int protocol) {
  return guarded(
      [&] {
        if (domain != AF_INET && domain != AF_INET6) return failed(EAFNOSUPPORT);
        const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (kind != SOCK_STREAM) return failed(ESOCKTNOSUPPORT);
        if (protocol != 0 && protocol != IPPROTO_TCP) return failed(EPROTONOSUPPORT);
        auto socket = std::make_shared<Socket>(domain);
        if (const int e = socket->open(); e != 0) return failed(e);
        return made(type, std::move(socket));
      },
      -1);
}

int urnic_rbind(int fd, const sockaddr* address, socklen_t length) {
  return guarded(
      [&] {
        const auto s = lookup(fd);
        return s == nullptr ? -1 : answer(s->bind(address, length));
      },
      -1);
}

int urnic_rlisten(int fd, int backlog) {
  return guarded(
      [&] {
        const auto s = lookup(fd);
        return s == nullptr ? -1 : answer(s->listen(backlog));
      },
      -1);
}

int urnic_raccept(int fd, sockaddr* address, socklen_t* length) {
  const auto listener = lookup(fd);
  if (listener == nullptr) return -1;
  for (;;) {
    const int e = guarded(
        [&] {
          std::shared_ptr<Socket> socket;
          if (const int why = listener->accept(&socket); why != 0) return -why;
          if (address != nullptr && length != nullptr) socket->address(true, address, length);
          const int number = made(0, std::move(socket));
          return number < 0 ? -errno : number;
        },
        -ENOMEM);
    if (e >= 0) return e;
    if (e != -EAGAIN || listener->non_blocking) return failed(-e);
    if (const int why = wait_for(fd, POLLIN, -1); why != 0) return failed(why);
  }
}

int urnic_rconnect(int fd, const sockaddr* address, socklen_t length) {
  const auto s = lookup(fd);
  if (s == nullptr) return -1;
  int e = guarded([&] { return s->connect(address, length); }, ENOMEM);
  while (!s->non_blocking && (e == EINPROGRESS || e == EALREADY)) {
    if (const int why = wait_for(fd, POLLOUT, -1); why != 0) return failed(why);
    e = s->connect_result();
  }
  return answer(e);
}

int urnic_rshutdown(int fd, int how) {
  return guarded(
      [&] {
        const auto s = lookup(fd);
        return s == nullptr ? -1 : answer(s->shutdown(how));
      },
      -1);
}

int urnic_rclose(int fd) {
  return guarded(
      [&] {
        if (Table::kind(fd) == Kind::inherited) {
          Table::forget(fd);
          return raw::close(fd);
        }
        const auto s = Table::get().remove(fd);
        if (s == nullptr) return failed(EBADF);
        s->give_up(fd);
        return 0;
      },
      -1);
}

int urnic_rpoll(pollfd* fds, nfds_t n, int timeout) {
  if (!has_rsocket(fds, n)) return ::poll(fds, n, timeout);
  int ready = poll_now(fds, n);
  for (Spin spin; ready == 0 && timeout != 0 && spin.goes_on();) ready = poll_now(fds, n);
  if (ready == 0 && timeout != 0) {
    look_at_all(fds, n, true);
    ready = ::poll(fds, n, timeout);
  }
  for (nfds_t i = 0; ready > 0 && i < n; ++i) show_broken(fds[i]);
  return ready;
}

int urnic_rselect(int n, fd_set* in, fd_set* out, fd_set* except, timeval* timeout) {
  const bool sleeps = timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_usec != 0;
  guarded(
      [&] {
        for (int fd = 0; fd < n && fd < FD_SETSIZE; ++fd) {
          const bool writes = out != nullptr && FD_ISSET(fd, out);
          if (!writes && (in == nullptr || !FD_ISSET(fd, in))) continue;
          look_at({fd, static_cast<short>(writes ? POLLOUT : 0), 0}, sleeps);
        }
        return 0;
      },
      0);
  return ::select(n, in, out, except, timeout);
}

// The number of an rsocket is a kernel descriptor, so a wait in the kernel works directly.
int urnic_repoll_create(int flags) {
  return epoll_create1(flags);
}

int urnic_repoll_ctl(int epfd, int op, int fd, epoll_event* event) {
  return epoll_ctl(epfd, op, fd, event);
}

int urnic_repoll_wait(int epfd, epoll_event* events, int most, int timeout) {
  return epoll_wait(epfd, events, most, timeout);
}

int urnic_rgetpeername(int fd, sockaddr* address, socklen_t* length) {
  const auto s = lookup(fd);
  return s == nullptr ? -1 : answer(s->address(true, address, length));
}

int urnic_rgetsockname(int fd, sockaddr* address, socklen_t* length) {
  const auto s = lookup(fd);
  return s == nullptr ? -1 : answer(s->address(false, address, length));
}

int urnic_rfcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  const auto s = lookup(fd);
  if (s == nullptr) return -1;
  switch (command) {
    case F_GETFL:
    case F_GETFD:
      return raw::control(fd, command, 0);
    case F_SETFD:
      return raw::control(fd, command, static_cast<int>(argument));
    case F_SETFL: {
      const int flags = static_cast<int>(argument);
      const int done = raw::control(fd, command, flags & ~O_ASYNC);
      if (done == 0) s->non_blocking = (flags & O_NONBLOCK) != 0;
      return done;
    }
    default:
      return failed(EINVAL);
  }
}

int urnic_rs_ioctl(int fd, unsigned long request, void* argument) {
  const auto s = lookup(fd);
  if (s == nullptr) return -1;
  switch (request) {
    case FIONBIO: {
      const int flags = raw::control(fd, F_GETFL, 0);
      const bool on = *static_cast<const int*>(argument) != 0;
      return urnic_rfcntl(fd, F_SETFL, long{on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK});
    }
    case FIONREAD:
      *static_cast<int*>(argument) =
          static_cast<int>(std::min<std::uint64_t>(s->readable(), INT_MAX));
      return 0;
    case FIOCLEX:
    case FIONCLEX:
      return raw::control(fd, F_SETFD, request == FIOCLEX ? FD_CLOEXEC : 0);
    default:
      return failed(ENOTTY);
  }
}

int urnic_rs_kind(int fd) {
  return static_cast<int>(Table::kind(fd));
}

int urnic_rs_dup(int fd, int to) {
  return guarded(
      [&] {
        const auto s = lookup(fd);
        if (s == nullptr) return -1;
        s->also_known_as(to);
        if (Table::get().add(to, s)) return 0;
        s->number_lost(to);
        return failed(EMFILE);
      },
      -1);
}
