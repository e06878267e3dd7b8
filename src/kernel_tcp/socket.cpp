#include "kernel_tcp/socket.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "kernel_tcp/host_addresses.h"
#include "kernel_tcp/kernel_address.h"

namespace urnic::kernel_tcp {
namespace {

constexpr std::uint32_t kDefaultMss = 536;
// Like the engine's own TCP: data that is unacknowledged for this long ends the connection.
constexpr unsigned kUserTimeoutMs = 100'000;
// The maximum number of records per system call.
constexpr std::size_t kMaxRecords = 64;
constexpr int kPortAttempts = 16;  // each fails only if another program took the port first

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

// With SO_REUSEADDR (required because of remains of old connections), the kernel treats an address
// as taken only once a socket listens on it. So this function listens for a moment, with a filter
// that drops all connections, and then clears SO_REUSEADDR. qemu-user cannot detach a filter: there
// one that passes everything takes its place.
int keep_others_out(int fd) {
  const auto pass_only = [fd](std::uint32_t bytes) {
    sock_filter f = BPF_STMT(BPF_RET | BPF_K, bytes);
    const sock_fprog program{1, &f};
    [[maybe_unused]] const int r =
        setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  };
  pass_only(0);
  const int error = ::listen(fd, 0) == 0 && ::shutdown(fd, SHUT_RDWR) == 0 ? 0 : errno;
  const int unused = 0;
  if (setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused) != 0) pass_only(~0u);
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 0);
  return error;
}

Outcome<Socket, int> bound(const SocketAddress& at, bool v6_only) {
  const bool v6 = at.ip.is_v6();
  Socket s(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!s.is_open()) return fail(errno);
  set_option(s.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (v6) set_option(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, at.ip.is_any() && !v6_only ? 0 : 1);
  KernelAddress a;
  const socklen_t n = to_kernel(at, &a);
  if (::bind(s.fd(), &a.any, n) != 0) return fail(errno);
  return s;
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

void Socket::set_dscp(std::uint8_t dscp) const {
  const int tos = dscp << 2;  // the kernel's TCP controls the ECN bits
  const bool v6 = local().ip.is_v6();
  // An IPv6 socket may also have an IPv4 address: one of the two options is then rejected.
  set_option(fd_, IPPROTO_IP, IP_TOS, tos);
  if (v6) set_option(fd_, IPPROTO_IPV6, IPV6_TCLASS, tos);
}

void Socket::set_keepalive(int idle_s) const {
  set_option(fd_, SOL_SOCKET, SO_KEEPALIVE, idle_s > 0 ? 1 : 0);
  if (idle_s <= 0) return;
  const int interval_s = std::max(1, idle_s / 3);
  set_option(fd_, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
  set_option(fd_, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
  set_option(fd_, IPPROTO_TCP, TCP_KEEPCNT, 3);
  // If this is set, it takes precedence over the probe count.
  set_option(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * (idle_s + 3 * interval_s));
}

Outcome<Socket, int> Socket::connect(const SocketAddress& to, const SocketAddress& from) {
  Socket s(
      ::socket(to.ip.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!s.is_open()) return fail(errno);
  prepare(s.fd_);
  KernelAddress a;
  if (!from.ip.is_any() || from.port != 0) {
    // connect() chooses an unspecified port, because it knows the peer: this does not exhaust the
    // ports early.
    const int how = from.port == 0 ? IP_BIND_ADDRESS_NO_PORT : SO_REUSEADDR;
    set_option(s.fd_, from.port == 0 ? IPPROTO_IP : SOL_SOCKET, how, 1);
    SocketAddress at = from;
    if (from.ip.is_any()) at.ip = to.ip.is_v6() ? IpAddress::any_v6() : IpAddress::any_v4();
    const socklen_t n = to_kernel(at, &a);
    if (::bind(s.fd_, &a.any, n) != 0) return fail(errno);
  }
  const socklen_t n = to_kernel(to, &a);
  if (::connect(s.fd_, &a.any, n) != 0 && errno != EINPROGRESS) {
    if (errno != EADDRNOTAVAIL) return fail(errno);
    // No port is left, or there is no source address, e.g. for IPv6 if it is disabled.
    return fail(host_source_for(to.ip) ? EADDRINUSE : ENETUNREACH);
  }
  // A peer on this machine has already answered, so a refusal is known at once.
  if (const int e = s.take_error(); e != 0) return fail(e);
  return s;
}

Outcome<Socket, int> Socket::reserve(const SocketAddress& at, bool v6_only, bool let_in) {
  if (at.port != 0 || let_in) {
    auto s = bound(at, v6_only);
    if (!s || let_in) return s;
    if (const int e = keep_others_out(s->fd_); e != 0) return fail(e);
    return s;
  }
  // A port chosen by the kernel is released when the socket stops listening; a requested port is
  // not.
  int error = EADDRINUSE;
  for (int i = 0; i < kPortAttempts && error == EADDRINUSE; ++i) {
    auto chosen = bound(at, v6_only);
    if (!chosen) return chosen;
    auto s = bound({at.ip, chosen->local().port}, v6_only);
    if (!s) return s;
    chosen->close();
    error = keep_others_out(s->fd_);
    if (error == 0) return s;
  }
  return fail(error);
}

void Socket::let_in() const {
  set_option(fd_, SOL_SOCKET, SO_REUSEADDR, 1);
}

int Socket::listen(int backlog) const {
  let_in();  // otherwise remains of old connections would prevent it
  return ::listen(fd_, backlog) == 0 ? 0 : errno;
}

Outcome<Socket, int> Socket::listen(const SocketAddress& at, int backlog) {
  auto s = reserve(at, false, true);
  if (!s) return s;
  if (const int e = s->listen(backlog); e != 0) return fail(e);
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
    // A connection that failed before it was accepted is not an error of the listener (accept(2)).
    if (errno == ECONNABORTED || errno == EPROTO || errno == EINTR) continue;
    return fail(errno);
  }
}

SocketAddress Socket::local() const {
  KernelAddress a{};
  socklen_t n = sizeof a;
  return getsockname(fd_, &a.any, &n) == 0 ? from_kernel(a.any) : SocketAddress{};
}

SocketAddress Socket::remote() const {
  KernelAddress a{};
  socklen_t n = sizeof a;
  return getpeername(fd_, &a.any, &n) == 0 ? from_kernel(a.any) : SocketAddress{};
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
    if (sent < 0) {  // report the bytes sent so far; the next attempt meets the error again
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
  const std::uint64_t bytes = std::uint64_t{t.tcpi_snd_cwnd} * t.tcpi_snd_mss;
  p.cwnd = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, 0xffffffffu));
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
  // Closing is not sufficient if a forked child still has the descriptor.
  const sockaddr nobody{AF_UNSPEC, {}};
  r = ::connect(fd_, &nobody, sizeof nobody);
  close();
}

void Socket::close() {
  private_descriptors::remove(fd_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace urnic::kernel_tcp
