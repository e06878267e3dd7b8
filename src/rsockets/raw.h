// System calls on descriptors that programs use as rsockets. They bypass libc's functions: in a
// process with librspreload those are its replacements, which would call back into this library.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace urnic::rsockets::raw {

inline long send(int fd, const void* from, std::size_t size, int flags) {
  return syscall(SYS_sendto, fd, from, size, flags, nullptr, 0);
}
inline long receive(int fd, void* to, std::size_t size, int flags) {
  return syscall(SYS_recvfrom, fd, to, size, flags, nullptr, nullptr);
}
inline int shutdown(int fd, int how) {
  return static_cast<int>(syscall(SYS_shutdown, fd, how));
}
inline int close(int fd) {
  return static_cast<int>(syscall(SYS_close, fd));
}
inline int control(int fd, int command, long argument) {
  return static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
}

}  // namespace urnic::rsockets::raw
