// The rsocket calls that transfer data.
#include <errno.h>
#include <poll.h>

#include <array>
#include <climits>

#include "dropin/errors.h"
#include "rsockets/calls.h"
#include "rsockets/socket.h"
#include "rsockets/wait.h"

namespace urnic::rsockets {
namespace {

using dropin::failed;
using dropin::guarded;

// Out-of-band data and error queues are not supported. Flags that are hints, or have no effect in a
// direction, are ignored, as the kernel does: rstream sends with MSG_WAITALL.
constexpr int kRefused = MSG_OOB | MSG_ERRQUEUE;

bool may_wait(const Socket& s, int flags) {
  return (flags & MSG_DONTWAIT) == 0 && !s.non_blocking;
}

// -1: no time-out.
int timeout_ms(Socket& s, bool sending) {
  return s.with_settings([&](const Settings& of, Socket::State) {
    return sending ? of.send_timeout_ms : of.receive_timeout_ms;
  });
}

// Calls `some` again as long as it has to wait. If bytes were transferred, their number is
// returned, even if an error followed.
template <class Some, class Moved>
ssize_t repeat(Socket& s, int fd, bool waits, short events, int most_ms, Some&& some,
               Moved&& moved) {
  for (;;) {
    int e = guarded(some, ENOMEM);
    for (Spin spin; e == EAGAIN && waits && spin.goes_on();) e = guarded(some, ENOMEM);
    if (e == EAGAIN && waits) {
      s.look(events == POLLOUT, true);
      e = wait_for(fd, events, most_ms);
      if (e == 0) continue;
    }
    const std::size_t bytes = moved();
    return e == 0 || bytes != 0 ? static_cast<ssize_t>(bytes) : failed(e);
  }
}

ssize_t send_all(int fd, Source source, int flags) {
  if ((flags & kRefused) != 0) return failed(EOPNOTSUPP);
  const auto s = lookup(fd);
  if (s == nullptr) return -1;
  const std::size_t all = source.left();
  return repeat(
      *s, fd, may_wait(*s, flags), POLLOUT, timeout_ms(*s, true), [&] { return s->send(source); },
      [&] { return all - source.left(); });
}

struct Sink {
  const iovec* parts;
  std::size_t count;
};

ssize_t receive_into(int fd, Sink sink, int flags) {
  if ((flags & kRefused) != 0) return failed(EOPNOTSUPP);
  const auto s = lookup(fd);
  if (s == nullptr) return -1;
  const bool look = (flags & MSG_PEEK) != 0, whole = (flags & MSG_WAITALL) != 0 && !look;
  std::size_t all = 0, part = 0, at = 0;
  const auto some = [&] {
    while (part < sink.count) {
      const iovec& v = sink.parts[part];
      std::size_t got = 0;
      const int e =
          s->receive(static_cast<std::uint8_t*>(v.iov_base) + at, v.iov_len - at, look, &got);
      all += got;
      at += got;
      if (e != 0) return e == EAGAIN && all != 0 && !whole ? 0 : e;
      if (look) return 0;
      if (at == v.iov_len) {
        ++part;
        at = 0;
      } else if (got == 0) {
        return 0;  // end of input
      }
    }
    return 0;
  };
  return repeat(*s, fd, may_wait(*s, flags), POLLIN, timeout_ms(*s, false), some,
                [&] { return all; });
}

bool is_right(const iovec* parts, int count) {
  return count >= 0 && count <= IOV_MAX && (parts != nullptr || count == 0);
}

}  // namespace
}  // namespace urnic::rsockets

using namespace urnic::rsockets;  // the exported functions are in the global namespace
using urnic::dropin::failed;
using urnic::dropin::guarded;

ssize_t urnic_rsend(int fd, const void* from, std::size_t size, int flags) {
  const iovec one{const_cast<void*>(from), size};
  return send_all(fd, Source(&one, 1), flags);
}

ssize_t urnic_rsendto(int fd, const void* from, std::size_t size, int flags, const sockaddr* to,
                      socklen_t length) {
  if (to != nullptr || length != 0) return failed(lookup(fd) == nullptr ? errno : EISCONN);
  return urnic_rsend(fd, from, size, flags);
}

ssize_t urnic_rsendmsg(int fd, const msghdr* message, int flags) {
  if (message == nullptr || message->msg_iovlen > IOV_MAX) return failed(EINVAL);
  if (message->msg_control != nullptr && message->msg_controllen != 0) return failed(EOPNOTSUPP);
  return send_all(fd, Source(message->msg_iov, message->msg_iovlen), flags);
}

ssize_t urnic_rwrite(int fd, const void* from, std::size_t size) {
  return urnic_rsend(fd, from, size, 0);
}

ssize_t urnic_rwritev(int fd, const iovec* parts, int count) {
  if (!is_right(parts, count)) return failed(EINVAL);
  return send_all(fd, Source(parts, static_cast<std::size_t>(count)), 0);
}

ssize_t urnic_rrecv(int fd, void* to, std::size_t size, int flags) {
  const iovec one{to, size};
  return receive_into(fd, {&one, 1}, flags);
}

ssize_t urnic_rrecvfrom(int fd, void* to, std::size_t size, int flags, sockaddr* from,
                        socklen_t* length) {
  const ssize_t n = urnic_rrecv(fd, to, size, flags);
  if (n >= 0 && from != nullptr && length != nullptr) {
    const auto s = lookup(fd);
    if (s == nullptr || s->address(true, from, length) != 0) *length = 0;
  }
  return n;
}

ssize_t urnic_rrecvmsg(int fd, msghdr* message, int flags) {
  if (message == nullptr || message->msg_iovlen > IOV_MAX) return failed(EINVAL);
  const ssize_t n = receive_into(fd, {message->msg_iov, message->msg_iovlen}, flags);
  if (n >= 0) {
    message->msg_namelen = 0;
    message->msg_controllen = 0;
    message->msg_flags = 0;
  }
  return n;
}

ssize_t urnic_rread(int fd, void* to, std::size_t size) {
  return urnic_rrecv(fd, to, size, 0);
}

ssize_t urnic_rreadv(int fd, const iovec* parts, int count) {
  if (!is_right(parts, count)) return failed(EINVAL);
  return receive_into(fd, {parts, static_cast<std::size_t>(count)}, 0);
}

// ---- mapped buffers of the program

off_t urnic_riomap(int fd, void* buffer, std::size_t length, int rights, int, off_t offset) {
  return guarded(
      [&]() -> off_t {
        const auto s = lookup(fd);
        if (s == nullptr) return -1;
        if ((rights & ~(PROT_WRITE | PROT_NONE)) != 0 || offset < -1) return failed(EINVAL);
        const off_t at =
            offset == -1 ? static_cast<off_t>(reinterpret_cast<std::uintptr_t>(buffer)) : offset;
        const int e =
            s->map(buffer, length, (rights & PROT_WRITE) != 0, static_cast<std::uint64_t>(at));
        return e == 0 ? at : failed(e);
      },
      -1);
}

int urnic_riounmap(int fd, void* buffer, std::size_t length) {
  return guarded(
      [&] {
        const auto s = lookup(fd);
        if (s == nullptr) return -1;
        const int e = s->unmap(buffer, length);
        return e == 0 ? 0 : failed(e);
      },
      -1);
}

std::size_t urnic_riowrite(int fd, const void* from, std::size_t size, off_t offset, int flags) {
  if ((flags & kRefused) != 0 || offset < 0) {
    return static_cast<std::size_t>(failed(offset < 0 ? EINVAL : EOPNOTSUPP));
  }
  const auto s = lookup(fd);
  if (s == nullptr) return static_cast<std::size_t>(-1);
  const iovec one{const_cast<void*>(from), size};
  Source source(&one, 1);
  const auto moved = [&] { return size - source.left(); };
  return static_cast<std::size_t>(repeat(
      *s, fd, may_wait(*s, flags), POLLOUT, timeout_ms(*s, true),
      [&] { return s->send_to_mapping(source, static_cast<std::uint64_t>(offset) + moved()); },
      moved));
}
