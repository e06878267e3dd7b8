// One TCP socket of the kernel: non-blocking, without delay (Nagle), owned by this object. Every
// call is one system call that never waits. Errors are errno values; the engine turns them into
// messages.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ip_address.h"
#include "base/private_descriptors.h"
#include "base/result.h"

namespace urnic::kernel_tcp {

// The result of an attempt to move bytes.
struct Moved {
  enum class What : std::uint8_t {
    Some,    // `bytes` > 0 of them
    NotNow,  // no data or no room; wait for readiness
    End,     // receiving: the peer's FIN
    Failed,  // `error`
  };
  What what = What::Failed;
  std::size_t bytes = 0;
  int error = 0;
};

// The kernel's TCP information about a connection (gauges except `retransmits`).
struct PathInfo {
  std::uint32_t cwnd = 0, ssthresh = 0;  // bytes
  std::uint32_t srtt_us = 0, rto_us = 0, mss = 0;
  std::uint64_t retransmits = 0;
};

// A child closes its copy after fork.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) { private_descriptors::add(fd); }
  ~Socket() { close(); }
  Socket(Socket&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  Socket& operator=(Socket&& o) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Begins to connect, from the address and port of `from` as far as they are specified. The port
  // may be that of a reserved socket with let_in. The socket then becomes writable (or fails),
  // unless the result is known at once, such as a refusal on this machine. EADDRINUSE: no port is
  // left, or this connection exists already. ENETUNREACH: no address of this machine has a route.
  static Outcome<Socket, int> connect(const SocketAddress& to, const SocketAddress& from);
  // Creates a socket at `at` that excludes other sockets from then on (EADDRINUSE: it is already
  // taken); port 0: the kernel chooses. Connections to it are refused. An unspecified IPv6 address
  // includes IPv4, unless `v6_only`. `let_in`: other sockets with this option may share the
  // address.
  static Outcome<Socket, int> reserve(const SocketAddress& at, bool v6_only, bool let_in);
  // For a reserved socket: permits other sockets with this option to share its address and port.
  void let_in() const;
  // For a reserved socket. Returns 0 or an errno value.
  int listen(int backlog) const;
  // Reserves and listens.
  static Outcome<Socket, int> listen(const SocketAddress& at, int backlog);
  // A spare descriptor for when no others are available: closing it for a moment permits one more
  // accept.
  static Socket spare();
  // The next connection of a listening socket; EAGAIN if there is none.
  Outcome<Socket, int> accept() const;

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // IPv4 addresses mapped into IPv6 are returned as IPv4.
  SocketAddress local() const;
  SocketAddress remote() const;
  // The error of an asynchronous operation (connecting), and clears it; 0 if there is none.
  int take_error() const;

  Moved receive(std::span<std::uint8_t> into) const;
  // Sends all pieces as consecutive bytes of the stream.
  Moved send(std::span<const iovec> pieces) const;
  // `records`: how many of `pieces` belong to each record. The kernel never puts bytes of two
  // records into one segment; a record that fits into a segment is sent in one.
  Moved send_records(std::span<const iovec> pieces, std::span<const std::uint32_t> records) const;

  // 0..63, for the IP headers of packets sent from now on.
  void set_dscp(std::uint8_t dscp) const;
  // Sends probes after `idle_s` seconds without traffic (SO_KEEPALIVE), and ends the connection
  // after three unanswered ones; 0: none.
  void set_keepalive(int idle_s) const;

  // The current payload of a full segment in bytes (without options).
  std::uint32_t mss() const;
  PathInfo info() const;
  void finish() const;  // FIN after all sent data
  void reset();         // RST now, then close
  void close();

 private:
  int fd_ = -1;
};

}  // namespace urnic::kernel_tcp
