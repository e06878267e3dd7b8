// One TCP socket of the kernel: non-blocking, without delay (Nagle), owned by this object. Every
// call is one system call that never waits. Errors are errno values; the engine puts them into
// words.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ip_address.h"
#include "base/private_descriptors.h"
#include "base/result.h"

namespace urnic::kernel_tcp {

// What became of an attempt to move bytes.
struct Moved {
  enum class What : std::uint8_t {
    Some,    // `bytes` > 0 of them
    NotNow,  // nothing there, or no room; readiness will tell
    End,     // receiving: the peer's FIN
    Failed,  // `error`
  };
  What what = What::Failed;
  std::size_t bytes = 0;
  int error = 0;
};

// What the kernel's TCP tells about a connection (gauges but for `retransmits`).
struct PathInfo {
  std::uint32_t cwnd = 0, ssthresh = 0;  // bytes
  std::uint32_t srtt_us = 0, rto_us = 0, mss = 0;
  std::uint64_t retransmits = 0;
};

// A child of a fork does not keep it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) { private_descriptors::add(fd); }
  ~Socket() { close(); }
  Socket(Socket&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  Socket& operator=(Socket&& o) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Begin to connect, from address and port of `from` as far as they are specified; the port may be
  // that of a reserved socket that lets others in. Writable (or failed) follows, but for what is
  // known at once, as that nobody listens on a port of this machine. EADDRINUSE: no port is left,
  // or there is such a connection. ENETUNREACH: no address of this machine leads there.
  static Outcome<Socket, int> connect(const SocketAddress& to, const SocketAddress& from);
  // A socket at `at`, which nobody else gets from now on (EADDRINUSE: somebody has it); port 0: the
  // kernel chooses. Who connects to it is refused. An unspecified version 6 address takes version 4
  // as well, unless told not to. `let_in`: others that let others in may have the same.
  static Outcome<Socket, int> reserve(const SocketAddress& at, bool v6_only, bool let_in);
  // Of a reserved socket. Others that let others in may come to its address and port.
  void let_in() const;
  // Of a reserved socket. 0 or an errno value.
  int listen(int backlog) const;
  // Reserved and listening.
  static Outcome<Socket, int> listen(const SocketAddress& at, int backlog);
  // A descriptor kept for when there are no others: given up for a moment, it lets one more come
  // in.
  static Socket spare();
  // The next connection of a listening socket; EAGAIN when there is none.
  Outcome<Socket, int> accept() const;

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Version 4 addresses mapped into version 6 come out as version 4.
  SocketAddress local() const;
  SocketAddress remote() const;
  // The error of an asynchronous operation (connecting), 0 if there is none; it is taken.
  int take_error() const;

  Moved receive(std::span<std::uint8_t> into) const;
  // All pieces as one stretch of the stream.
  Moved send(std::span<const iovec> pieces) const;
  // `records`: how many of `pieces` each record has. The kernel never puts bytes of two records
  // into one segment; a record that fits a segment travels in one.
  Moved send_records(std::span<const iovec> pieces, std::span<const std::uint32_t> records) const;

  // 0..63, of the IP headers of what it sends from now on.
  void set_dscp(std::uint8_t dscp) const;
  // Probes after so many idle seconds (SO_KEEPALIVE), and the end when three go unanswered; 0:
  // none.
  void set_keepalive(int idle_s) const;

  // Payload bytes of a full segment now (options deducted).
  std::uint32_t mss() const;
  PathInfo info() const;
  void finish() const;  // FIN behind what has been sent
  void reset();         // RST now; closes
  void close();

 private:
  int fd_ = -1;
};

}  // namespace urnic::kernel_tcp
