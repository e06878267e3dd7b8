// librspreload.so: preloaded, it makes the TCP sockets of a program rsockets. Calls with their
// numbers go to liburnic-dropin.so, all others to the next library. poll, select and epoll need no
// replacement: an rsocket's number is a kernel descriptor that is ready when the rsocket is.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdarg>

#include "dropin/next_function.h"
#include "rsockets/calls.h"

// In headers that check buffer sizes, some of these names are inline functions.
#undef read
#undef recv
#undef recvfrom

namespace {

#define URNIC_NEXT(name)                               \
  ([] {                                                \
    static decltype(::name)* kept;                     \
    return urnic::dropin::next_function(&kept, #name); \
  }())

bool is_ours(int fd) {
  return urnic_rs_kind(fd) != 0;
}

// The engine's own sockets stay kernel sockets.
bool called_by_engine(const void* from) {
  Dl_info engine, caller;
  return dladdr(reinterpret_cast<const void*>(&urnic_rs_kind), &engine) != 0 &&
         dladdr(from, &caller) != 0 && engine.dli_fbase == caller.dli_fbase;
}

bool is_stream(int domain, int type, int protocol) {
  return (domain == AF_INET || domain == AF_INET6) &&
         (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
         (protocol == 0 || protocol == IPPROTO_TCP);
}

// Registers `to`, a kernel duplicate of `from`, as a number of the same rsocket.
int also(int from, int to) {
  if (to < 0 || urnic_rs_kind(from) != 1 || urnic_rs_dup(from, to) == 0) return to;
  const int error = errno;
  URNIC_NEXT(close)(to);
  errno = error;
  return -1;
}

// Like the kernel's TCP: sending to a closed end raises SIGPIPE in the sending thread, unless
// MSG_NOSIGNAL is set. rsend itself never raises it, like librdmacm's.
ssize_t piped(ssize_t sent, int flags) {
  if (sent < 0 && errno == EPIPE && (flags & MSG_NOSIGNAL) == 0) {
    raise(SIGPIPE);
    errno = EPIPE;
  }
  return sent;
}

ssize_t send_from_file(int out, int in, off_t* offset, std::size_t size) {
  char part[16384];
  std::size_t sent = 0;
  while (sent < size) {
    const std::size_t wanted = size - sent < sizeof part ? size - sent : sizeof part;
    // Advances only by the bytes sent: the rest of a part may have to wait.
    const off_t at = offset != nullptr ? *offset : lseek(in, 0, SEEK_CUR);
    if (at < 0) return sent != 0 ? static_cast<ssize_t>(sent) : -1;
    const ssize_t n = pread(in, part, wanted, at);
    if (n <= 0) return sent != 0 || n == 0 ? static_cast<ssize_t>(sent) : -1;
    const ssize_t gone = urnic_rsend(out, part, static_cast<std::size_t>(n), 0);
    if (gone < 0) return sent != 0 ? static_cast<ssize_t>(sent) : -1;
    if (offset != nullptr) {
      *offset = at + gone;
    } else {
      lseek(in, at + gone, SEEK_SET);
    }
    sent += static_cast<std::size_t>(gone);
    if (gone < n) break;
  }
  return static_cast<ssize_t>(sent);
}

int control(int fd, int command, long argument) {
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
    return also(fd, URNIC_NEXT(fcntl)(fd, command, argument));
  }
  return urnic_rfcntl(fd, command, argument);
}

}  // namespace

// ---- creating, connecting, closing

extern "C" int socket(int domain, int type, int protocol) noexcept {
  const void* const caller = __builtin_return_address(0);
  if (!is_stream(domain, type, protocol) || called_by_engine(caller)) {
    return URNIC_NEXT(socket)(domain, type, protocol);
  }
  return urnic_rsocket(domain, type, protocol);
}

extern "C" int bind(int fd, const sockaddr* a, socklen_t n) noexcept {
  return is_ours(fd) ? urnic_rbind(fd, a, n) : URNIC_NEXT(bind)(fd, a, n);
}

extern "C" int listen(int fd, int backlog) noexcept {
  return is_ours(fd) ? urnic_rlisten(fd, backlog) : URNIC_NEXT(listen)(fd, backlog);
}

extern "C" int accept(int fd, sockaddr* a, socklen_t* n) {
  return is_ours(fd) ? urnic_raccept(fd, a, n) : URNIC_NEXT(accept)(fd, a, n);
}

extern "C" int accept4(int fd, sockaddr* a, socklen_t* n, int flags) {
  if (!is_ours(fd)) return URNIC_NEXT(accept4)(fd, a, n, flags);
  const int made = urnic_raccept(fd, a, n);
  if (made < 0) return made;
  if ((flags & SOCK_NONBLOCK) != 0) urnic_rfcntl(made, F_SETFL, long{O_RDWR | O_NONBLOCK});
  if ((flags & SOCK_CLOEXEC) != 0) urnic_rfcntl(made, F_SETFD, long{FD_CLOEXEC});
  return made;
}

extern "C" int connect(int fd, const sockaddr* a, socklen_t n) {
  return is_ours(fd) ? urnic_rconnect(fd, a, n) : URNIC_NEXT(connect)(fd, a, n);
}

extern "C" int shutdown(int fd, int how) noexcept {
  return is_ours(fd) ? urnic_rshutdown(fd, how) : URNIC_NEXT(shutdown)(fd, how);
}

extern "C" int close(int fd) {
  return is_ours(fd) ? urnic_rclose(fd) : URNIC_NEXT(close)(fd);
}

// ---- data

extern "C" ssize_t read(int fd, void* to, std::size_t size) {
  return is_ours(fd) ? urnic_rread(fd, to, size) : URNIC_NEXT(read)(fd, to, size);
}

extern "C" ssize_t readv(int fd, const iovec* parts, int count) {
  return is_ours(fd) ? urnic_rreadv(fd, parts, count) : URNIC_NEXT(readv)(fd, parts, count);
}

extern "C" ssize_t recv(int fd, void* to, std::size_t size, int flags) {
  return is_ours(fd) ? urnic_rrecv(fd, to, size, flags) : URNIC_NEXT(recv)(fd, to, size, flags);
}

extern "C" ssize_t recvfrom(int fd, void* to, std::size_t size, int flags, sockaddr* a,
                            socklen_t* n) {
  return is_ours(fd) ? urnic_rrecvfrom(fd, to, size, flags, a, n)
                     : URNIC_NEXT(recvfrom)(fd, to, size, flags, a, n);
}

extern "C" ssize_t recvmsg(int fd, msghdr* m, int flags) {
  return is_ours(fd) ? urnic_rrecvmsg(fd, m, flags) : URNIC_NEXT(recvmsg)(fd, m, flags);
}

extern "C" ssize_t write(int fd, const void* from, std::size_t size) {
  return is_ours(fd) ? piped(urnic_rwrite(fd, from, size), 0) : URNIC_NEXT(write)(fd, from, size);
}

extern "C" ssize_t writev(int fd, const iovec* parts, int count) {
  return is_ours(fd) ? piped(urnic_rwritev(fd, parts, count), 0)
                     : URNIC_NEXT(writev)(fd, parts, count);
}

extern "C" ssize_t send(int fd, const void* from, std::size_t size, int flags) {
  return is_ours(fd) ? piped(urnic_rsend(fd, from, size, flags), flags)
                     : URNIC_NEXT(send)(fd, from, size, flags);
}

// The address is ignored for a connected socket, as Linux's TCP does; rsendto() refuses it.
extern "C" ssize_t sendto(int fd, const void* from, std::size_t size, int flags, const sockaddr* a,
                          socklen_t n) {
  return is_ours(fd) ? piped(urnic_rsend(fd, from, size, flags), flags)
                     : URNIC_NEXT(sendto)(fd, from, size, flags, a, n);
}

extern "C" ssize_t sendmsg(int fd, const msghdr* m, int flags) {
  return is_ours(fd) ? piped(urnic_rsendmsg(fd, m, flags), flags)
                     : URNIC_NEXT(sendmsg)(fd, m, flags);
}

extern "C" ssize_t sendfile(int out, int in, off_t* offset, std::size_t size) noexcept {
  return is_ours(out) ? piped(send_from_file(out, in, offset, size), 0)
                      : URNIC_NEXT(sendfile)(out, in, offset, size);
}

extern "C" ssize_t sendfile64(int out, int in, off64_t* offset, std::size_t size) noexcept {
  static_assert(sizeof(off_t) == sizeof(off64_t));
  return is_ours(out) ? piped(send_from_file(out, in, offset, size), 0)
                      : URNIC_NEXT(sendfile64)(out, in, offset, size);
}

// Called by programs that were compiled with checks of buffer sizes.
extern "C" void __chk_fail() __attribute__((noreturn));
extern "C" ssize_t __read_chk(int fd, void* to, std::size_t size, std::size_t room) {
  if (size > room) __chk_fail();
  return read(fd, to, size);
}
extern "C" ssize_t __recv_chk(int fd, void* to, std::size_t size, std::size_t room, int flags) {
  if (size > room) __chk_fail();
  return recv(fd, to, size, flags);
}
extern "C" ssize_t __recvfrom_chk(int fd, void* to, std::size_t size, std::size_t room, int flags,
                                  sockaddr* a, socklen_t* n) {
  if (size > room) __chk_fail();
  return recvfrom(fd, to, size, flags, a, n);
}

// ---- addresses and options

extern "C" int getpeername(int fd, sockaddr* a, socklen_t* n) noexcept {
  return is_ours(fd) ? urnic_rgetpeername(fd, a, n) : URNIC_NEXT(getpeername)(fd, a, n);
}

extern "C" int getsockname(int fd, sockaddr* a, socklen_t* n) noexcept {
  return is_ours(fd) ? urnic_rgetsockname(fd, a, n) : URNIC_NEXT(getsockname)(fd, a, n);
}

extern "C" int getsockopt(int fd, int level, int name, void* value, socklen_t* n) noexcept {
  return is_ours(fd) ? urnic_rgetsockopt(fd, level, name, value, n)
                     : URNIC_NEXT(getsockopt)(fd, level, name, value, n);
}

extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t n) noexcept {
  return is_ours(fd) ? urnic_rsetsockopt(fd, level, name, value, n)
                     : URNIC_NEXT(setsockopt)(fd, level, name, value, n);
}

extern "C" int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  return is_ours(fd) ? control(fd, command, argument) : URNIC_NEXT(fcntl)(fd, command, argument);
}

extern "C" int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  return is_ours(fd) ? control(fd, command, argument) : URNIC_NEXT(fcntl64)(fd, command, argument);
}

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!is_ours(fd)) return URNIC_NEXT(ioctl)(fd, request, argument);
  return urnic_rs_ioctl(fd, request, argument);
}

extern "C" int dup(int fd) noexcept {
  return also(fd, URNIC_NEXT(dup)(fd));
}

extern "C" int dup2(int fd, int to) noexcept {
  if (fd == to) return URNIC_NEXT(dup2)(fd, to);
  if (is_ours(to) && URNIC_NEXT(fcntl)(fd, F_GETFD) >= 0) urnic_rclose(to);
  return also(fd, URNIC_NEXT(dup2)(fd, to));
}

extern "C" int dup3(int fd, int to, int flags) noexcept {
  if (fd != to && is_ours(to) && URNIC_NEXT(fcntl)(fd, F_GETFD) >= 0) urnic_rclose(to);
  return also(fd, URNIC_NEXT(dup3)(fd, to, flags));
}
