// A plain socket that sends whatever the test wants to a device over the kernel's TCP.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "iwarp/stream_ends.h"
#include "mpa/builder.h"
#include "mpa/startup.h"

namespace urnic::stream_test {

struct Bare {
  explicit Bare(std::uint16_t port) : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Bare() {
    if (fd >= 0) close(fd);
  }
  void send(const std::vector<std::uint8_t>& bytes) const {
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void request() const {
    mpa::StartupOptions o;
    o.peer_to_peer = false;
    std::vector<std::uint8_t> frame(mpa::kFrameHeader + mpa::kMaxPrivateData);
    frame.resize(mpa::emit_frame(mpa::make_request(o, {}), frame.data()));
    send(frame);
  }
  // Reads until there are `n` bytes, the stream ends (then fewer), or a minute has passed.
  std::size_t read(std::size_t n) const {
    std::size_t got = 0;
    std::vector<std::uint8_t> in(65536);
    while (got < n) {
      pollfd p{fd, POLLIN, 0};
      if (::poll(&p, 1, 60000) != 1) break;
      const ssize_t r = ::recv(fd, in.data(), std::min(in.size(), n - got), 0);
      if (r <= 0) break;
      got += static_cast<std::size_t>(r);
    }
    return got;
  }
  // Number of bytes that can be read.
  std::size_t readable() const {
    int n = 0;
    EXPECT_EQ(ioctl(fd, FIONREAD, &n), 0);
    return static_cast<std::size_t>(n);
  }
  int fd;
};

// The descriptor of the server's end of `peer`; both are in this process.
inline int other_end(const Bare& peer) {
  sockaddr_in ours{}, theirs{};
  socklen_t n = sizeof ours;
  getsockname(peer.fd, reinterpret_cast<sockaddr*>(&ours), &n);
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_storage any{};
    n = sizeof any;
    if (fd == peer.fd || getpeername(fd, reinterpret_cast<sockaddr*>(&any), &n) != 0) continue;
    if (any.ss_family == AF_INET) std::memcpy(&theirs, &any, sizeof theirs);
    if (any.ss_family == AF_INET6) {
      theirs.sin_port = reinterpret_cast<const sockaddr_in6&>(any).sin6_port;
    }
    if (theirs.sin_port == ours.sin_port) return fd;
  }
  return -1;
}

// True if one of those events of poll(2) is pending.
inline bool has(int fd, short events) {
  pollfd p{fd, events, 0};
  return ::poll(&p, 1, 0) == 1 && (p.revents & events) != 0;
}

inline SendRequest small_send(const Sge& sge) {
  SendRequest r;
  r.opcode = Opcode::send;
  r.sges = {&sge, 1};
  return r;
}

// The smallest FPDU: an empty Write, whose STag and offset have no meaning.
inline std::vector<std::uint8_t> empty_write() {
  const std::uint8_t write[14] = {0xc1, 0x40};
  std::vector<std::uint8_t> fpdu(32);
  fpdu.resize(mpa::build_fpdu(fpdu.data(), write, {}, true).len);
  return fpdu;
}

}  // namespace urnic::stream_test
