#include "port/memif_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace urnic::port::memif {

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
  // One byte more than a message, to detect longer ones.
  std::array<std::uint8_t, kMessageSize + 1> bytes{};
  iovec iov{bytes.data(), bytes.size()};
  // Has room for more descriptors than a message may carry; the kernel drops further ones.
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
      fd->reset(one);  // keeps the last one and closes the others
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

}  // namespace urnic::port::memif
