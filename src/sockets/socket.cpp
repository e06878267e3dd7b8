#include "sockets/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace urnic::sockets {
namespace {

constexpr std::uint32_t kDefaultMss = 536;
// As the engine's own TCP: data that is not acknowledged for so long ends the connection.
constexpr unsigned kUserTimeoutMs = 100'000;
// Records of one system call.
constexpr std::size_t kMaxRecords = 64;

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

socklen_t to_kernel(const SocketAddress& a, Address* out) {
  *out = {};
  if (a.ip.is_v4()) {
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(a.port);
    std::memcpy(&out->v4.sin_addr, a.ip.bytes().data(), 4);
    return sizeof out->v4;
  }
  out->v6.sin6_family = AF_INET6;
  out->v6.sin6_port = htons(a.port);
  std::memcpy(&out->v6.sin6_addr, a.ip.bytes().data(), 16);
  return sizeof out->v6;
}

SocketAddress from_kernel(const Address& a) {
  if (a.any.sa_family == AF_INET) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(&a.v4.sin_addr);
    return {IpAddress::from_bytes({p, 4}), ntohs(a.v4.sin_port)};
  }
  const auto* p = reinterpret_cast<const std::uint8_t*>(&a.v6.sin6_addr);
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&a.v6.sin6_addr) != 0;
  return {mapped ? IpAddress::from_bytes({p + 12, 4}) : IpAddress::from_bytes({p, 16}),
          ntohs(a.v6.sin6_port)};
}

void set_option(int fd, int level, int name, int value) {
  [[maybe_unused]] const int r = setsockopt(fd, level, name, &value, sizeof value);
}

void prepare(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(kUserTimeoutMs));
}

Moved moved(ssize_t n, Moved::What at_zero) {
  if (n > 0) return {Moved::What::Some, static_cast<std::size_t>(n), 0};
  if (n == 0) return {at_zero, 0, 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {Moved::What::NotNow, 0, 0};
  return {Moved::What::Failed, 0, errno};
}

}  // namespace

Socket& Socket::operator=(Socket&& o) noexcept {
  if (this != &o) {
    close();
    fd_ = o.fd_;
    o.fd_ = -1;
  }
  return *this;
}

void Socket::set_keepalive(int idle_s) const {
  set_option(fd_, SOL_SOCKET, SO_KEEPALIVE, idle_s > 0 ? 1 : 0);
  if (idle_s <= 0) return;
  const int interval_s = std::max(1, idle_s / 3);
  set_option(fd_, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
  set_option(fd_, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
  set_option(fd_, IPPROTO_TCP, TCP_KEEPCNT, 3);
  // Where it is set it decides in the place of the count.
  set_option(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * (idle_s + 3 * interval_s));
}

Outcome<Socket, int> Socket::connect(const SocketAddress& to, const IpAddress& from) {
  Socket s(
      ::socket(to.ip.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!s.is_open()) return fail(errno);
  prepare(s.fd_);
  Address a;
  if (!from.is_any()) {
    // The port is chosen by connect(), which knows the other end: no early exhaustion.
    set_option(s.fd_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    const socklen_t n = to_kernel({from, 0}, &a);
    if (::bind(s.fd_, &a.any, n) != 0) return fail(errno);
  }
  const socklen_t n = to_kernel(to, &a);
  if (::connect(s.fd_, &a.any, n) != 0 && errno != EINPROGRESS) return fail(errno);
  // A peer on this machine has answered by now: its refusal is known before anything has begun.
  if (const int e = s.take_error(); e != 0) return fail(e);
  return s;
}

Outcome<Socket, int> Socket::listen(const SocketAddress& at, int backlog) {
  const bool v6 = at.ip.is_v6();
  Socket s(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!s.is_open()) return fail(errno);
  set_option(s.fd_, SOL_SOCKET, SO_REUSEADDR, 1);
  if (v6) set_option(s.fd_, IPPROTO_IPV6, IPV6_V6ONLY, at.ip.is_any() ? 0 : 1);
  Address a;
  const socklen_t n = to_kernel(at, &a);
  if (::bind(s.fd_, &a.any, n) != 0) return fail(errno);
  if (::listen(s.fd_, backlog) != 0) return fail(errno);
  return s;
}

Socket Socket::spare() {
  return Socket(eventfd(0, EFD_CLOEXEC));
}

Outcome<Socket, int> Socket::accept() const {
  for (;;) {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      prepare(fd);
      return Socket(fd);
    }
    // A connection that failed before it was taken is not the listener's affair (accept(2)).
    if (errno == ECONNABORTED || errno == EPROTO || errno == EINTR) continue;
    return fail(errno);
  }
}

SocketAddress Socket::local() const {
  Address a{};
  socklen_t n = sizeof a;
  return getsockname(fd_, &a.any, &n) == 0 ? from_kernel(a) : SocketAddress{};
}

SocketAddress Socket::remote() const {
  Address a{};
  socklen_t n = sizeof a;
  return getpeername(fd_, &a.any, &n) == 0 ? from_kernel(a) : SocketAddress{};
}

int Socket::take_error() const {
  int e = 0;
  socklen_t n = sizeof e;
  return getsockopt(fd_, SOL_SOCKET, SO_ERROR, &e, &n) == 0 ? e : errno;
}

Moved Socket::receive(std::span<std::uint8_t> into) const {
  return moved(::recv(fd_, into.data(), into.size(), MSG_DONTWAIT), Moved::What::End);
}

Moved Socket::send(std::span<const iovec> pieces) const {
  msghdr m{};
  m.msg_iov = const_cast<iovec*>(pieces.data());
  m.msg_iovlen = pieces.size();
  return moved(::sendmsg(fd_, &m, MSG_DONTWAIT | MSG_NOSIGNAL), Moved::What::NotNow);
}

Moved Socket::send_records(std::span<const iovec> pieces,
                           std::span<const std::uint32_t> records) const {
  mmsghdr m[kMaxRecords];
  std::size_t total = 0;
  while (!records.empty()) {
    const std::size_t n = std::min(records.size(), kMaxRecords);
    std::size_t length[kMaxRecords];
    for (std::size_t i = 0; i < n; ++i) {
      m[i] = {};
      m[i].msg_hdr.msg_iov = const_cast<iovec*>(pieces.data());
      m[i].msg_hdr.msg_iovlen = records[i];
      length[i] = 0;
      for (const iovec& v : pieces.first(records[i])) length[i] += v.iov_len;
      pieces = pieces.subspan(records[i]);
    }
    const int sent =
        ::sendmmsg(fd_, m, static_cast<unsigned>(n), MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR);
    if (sent < 0) {  // what went before counts; the next attempt meets the error again
      return total != 0 ? Moved{Moved::What::Some, total, 0} : moved(-1, Moved::What::NotNow);
    }
    for (int i = 0; i < sent; ++i) total += m[i].msg_len;
    const bool whole = static_cast<std::size_t>(sent) == n && m[n - 1].msg_len == length[n - 1];
    if (!whole) break;
    records = records.subspan(n);
  }
  if (total == 0) return {Moved::What::NotNow, 0, 0};
  return {Moved::What::Some, total, 0};
}

std::uint32_t Socket::mss() const {
  int v = 0;
  socklen_t n = sizeof v;
  if (getsockopt(fd_, IPPROTO_TCP, TCP_MAXSEG, &v, &n) != 0 || v <= 0) return kDefaultMss;
  return static_cast<std::uint32_t>(v);
}

PathInfo Socket::info() const {
  tcp_info t{};
  socklen_t n = sizeof t;
  if (!is_open() || getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &t, &n) != 0) return {};
  PathInfo p;
  const std::uint64_t octets = std::uint64_t{t.tcpi_snd_cwnd} * t.tcpi_snd_mss;
  p.cwnd = static_cast<std::uint32_t>(std::min<std::uint64_t>(octets, 0xffffffffu));
  const std::uint64_t threshold = std::uint64_t{t.tcpi_snd_ssthresh} * t.tcpi_snd_mss;
  p.ssthresh = static_cast<std::uint32_t>(std::min<std::uint64_t>(threshold, 0xffffffffu));
  p.srtt_us = t.tcpi_rtt;
  p.rto_us = t.tcpi_rto;
  p.mss = t.tcpi_snd_mss;
  p.retransmits = t.tcpi_total_retrans;
  return p;
}

void Socket::finish() const {
  ::shutdown(fd_, SHUT_WR);
}

void Socket::reset() {
  if (!is_open()) return;
  const linger now{1, 0};
  [[maybe_unused]] int r = setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  // Closing is not enough where a forked child still has the descriptor.
  const sockaddr nobody{AF_UNSPEC, {}};
  r = ::connect(fd_, &nobody, sizeof nobody);
  close();
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace urnic::sockets
