// TCP as a library: IP datagrams in, IP datagrams out, byte-stream endpoints in between. It opens
// no descriptor, reads no clock and starts no thread, and it does not depend on how datagrams are
// carried. So it runs over any carrier, and in virtual time: the same inputs give the same
// datagrams, byte for byte. (pkg-config urnic-tcp, CMake target urnic::tcp;
// examples/virtual_time.cpp.)
//
//   TcpStack s({.addresses = {"10.0.0.1"}, .seed = secret});
//   a datagram arrives           s.input(datagram, now)
//   next_deadline() is reached   s.run(now)
//   after each of these calls    while (s.next_output(&d)) send(d.bytes)
//   the state of an endpoint     readiness(), or the call-back of set_on_change()
//
// TCP is that of RFC 9293 with window scaling, timestamps and PAWS (RFC 7323), SACK and D-SACK
// (2018, 2883), RACK-TLP (8985), PRR (6937, 9937), NewReno, CUBIC and DCTCP (6582, 9438, 8257), ECN
// (3168), HyStart++ (9406), F-RTO and undo (5682, 4015), SYN cookies (4987), challenge ACKs (5961),
// keyed sequence numbers, timestamps and ports (6528, 6056); path MTU by ICMP (1191, 8201). IPv4
// and IPv6; fragments are not reassembled, urgent data is delivered in line.
//
// Units. Bytes, unless stated otherwise. Times are nanoseconds of a monotonic clock with any
// origin; a `now` earlier than that of the call before is treated as equal to it. Options that are
// times are in microseconds.
//
// Ownership. The stack owns the state of its endpoints; an endpoint is a number, which means
// nothing to another stack. A call with an endpoint that is not, or no longer, valid returns
// Invalid and does nothing. Bytes given to write() and input() are copied; the bytes of an outgoing
// datagram are lent, see TcpDatagram. The destructor sends nothing.
//
// Threads. One thread at a time per stack; several stacks are independent. Call-backs run in the
// thread of the call that caused them, at its end, and may call every function of the stack.
//
// Errors are values. No function throws, except std::bad_alloc when memory runs out; after that the
// stack may only be destroyed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "urnic/status.h"

namespace urnic {

using TcpTime = std::chrono::nanoseconds;
inline constexpr TcpTime kTcpNever = TcpTime::max();

enum class TcpEndpoint : std::uint64_t { None = 0 };

enum class TcpStatus : std::uint8_t {
  Ok,
  WouldBlock,   // nothing to read, no room to write, no connection to accept
  InProgress,   // the connection is being opened
  EndOfStream,  // the peer has sent all it will
  Reset,        // by the peer
  Refused,      // the peer does not listen there
  TimedOut,     // retries, keep-alive or user timeout ran out
  Unreachable,  // an ICMP error ended the attempt, or explains why it timed out
  BrokenPipe,   // this side may not write any more
  NotConnected,
  AlreadyConnected,
  AddressInUse,
  NoAddress,  // not an address of this stack, or none of the family
  Invalid,    // an argument, option or endpoint that makes no sense here
};
URNIC_API const char* to_string(TcpStatus);

// `bytes` is meaningful only with Ok.
struct TcpIo {
  TcpStatus status = TcpStatus::Invalid;
  std::size_t bytes = 0;
};

// The present state of an endpoint.
struct TcpReadiness {
  std::size_t readable = 0;  // bytes read() would return
  std::size_t writable = 0;  // bytes write() would take
  bool acceptable = false;   // accept() would succeed
  bool connected = false;
  bool peer_closed = false;  // end of stream, perhaps after `readable` more bytes
  bool error = false;        // take_error() has an error
};

// The changes of an endpoint, or-ed.
enum TcpChange : std::uint32_t {
  kTcpReadable = 1,
  kTcpWritable = 2,
  kTcpAcceptable = 4,
  kTcpConnected = 8,
  kTcpPeerClosed = 16,
  kTcpError = 32,
};

// A whole IP datagram to send, checksums included. `bytes` is valid until the next call of
// next_output(), or, with a sink, during the call-back; `time` is when it leaves.
struct TcpDatagram {
  std::span<const std::uint8_t> bytes;
  TcpTime time{};
};

// A snapshot of a connection.
struct TcpInfo {
  std::string_view state;                  // RFC 9293 3.3.2, "ESTABLISHED"
  std::uint64_t acked = 0, delivered = 0;  // bytes so far, sent and received
  std::uint32_t cwnd = 0, ssthresh = 0, in_flight = 0, lost = 0, sacked = 0;
  std::uint32_t send_window = 0, receive_window = 0;
  std::uint64_t retransmissions = 0;  // segments
  TcpTime srtt{}, rttvar{}, rto{};    // srtt 0: not measured yet
  std::uint16_t send_mss = 0;         // payload of a full segment
  bool sack = false, timestamps = false, ecn = false, window_scaling = false;
  std::size_t unsent = 0, unread = 0;
};

struct TcpCounters {
  std::uint64_t datagrams_in = 0, datagrams_out = 0;
  std::uint64_t dropped_ip = 0;  // not IP, not for us, fragments, not TCP or ICMP
  std::uint64_t dropped_checksum = 0, dropped_header = 0, dropped_backlog = 0;
  std::uint64_t cookies_sent = 0, cookies_accepted = 0;
  std::uint64_t no_connection = 0, resets_sent = 0, resets_received = 0;
  std::uint64_t challenge_acks = 0, challenge_acks_withheld = 0;
  std::uint64_t opened_active = 0, opened_passive = 0, retransmissions = 0;
};

struct TcpSettings {
  // local addresses, "10.0.0.1", "fd00::1"; add_address() adds more
  std::vector<std::string> addresses;
  // All keys and random choices are derived from it. Use a random secret in production (getrandom),
  // and any fixed number where runs must be repeatable.
  std::uint64_t seed = 1;
  bool verify_checksums = true;  // of received TCP and ICMP
  std::uint8_t ttl = 64;
  std::uint16_t port_first = 32768, port_last = 60999;  // ephemeral ports
  std::uint64_t memory_limit = 256u << 20;  // of all buffers with option "auto-tune" together
};

// Names of all options, with the bounds of their values. Their meaning and defaults: docs/tcp.md.
// Values are integers; times are microseconds, sizes bytes, switches 0 or 1.
struct TcpOption {
  std::string_view name;
  std::int64_t least = 0, most = 0;
  bool changeable = false;  // can also be changed on an open connection
};
URNIC_API std::vector<TcpOption> tcp_options();

class URNIC_API TcpStack {
 public:
  // Addresses that cannot be parsed are ignored; add_address() reports them by returning false.
  explicit TcpStack(const TcpSettings& settings = {});
  ~TcpStack();
  TcpStack(TcpStack&&) noexcept;
  TcpStack& operator=(TcpStack&&) noexcept;

  bool add_address(std::string_view address);

  // ---- endpoints. Addresses are texts, "10.0.0.1:80", "[fd00::1]:80".
  // Creates an endpoint that is not connected.
  TcpEndpoint open();
  // "0.0.0.0:80", "[::]:80": any local address; port 0: chosen later.
  TcpStatus bind(TcpEndpoint, std::string_view local);
  // Accepts connections to the bound address. `backlog` >= 1: established connections that may wait
  // for accept().
  TcpStatus listen(TcpEndpoint, unsigned backlog);
  // The oldest waiting connection; None when there is none.
  TcpEndpoint accept(TcpEndpoint listener, TcpTime now);
  // Returns InProgress; the change "connected" or "error" follows.
  TcpStatus connect(TcpEndpoint, std::string_view remote, TcpTime now);

  // Returns Ok with bytes > 0 (or an empty `dst`), WouldBlock, EndOfStream, or the pending error.
  TcpIo read(TcpEndpoint, std::span<std::uint8_t> dst, TcpTime now);
  // Like read(), starting at byte `skip`, without consuming anything; errors stay pending.
  TcpIo peek(TcpEndpoint, std::span<std::uint8_t> dst, std::size_t skip = 0) const;
  // Takes as much as fits in the send buffer. `more`: the data that follows belongs to it; less
  // than a full segment waits until push(), a write without `more`, or until 200 ms have passed.
  TcpIo write(TcpEndpoint, std::span<const std::uint8_t> src, TcpTime now, bool more = false);
  TcpStatus push(TcpEndpoint, TcpTime now);
  // Sends the FIN after everything that was written.
  TcpStatus shutdown_write(TcpEndpoint, TcpTime now);
  // Acknowledges and discards received bytes, unread ones and later ones.
  TcpStatus shutdown_read(TcpEndpoint, TcpTime now);
  // Releases the endpoint; the stack finishes the stream by itself (FIN, retransmissions,
  // TIME-WAIT). If there are unread bytes, or bytes arrive later, it resets the connection instead
  // (RFC 2525 2.17).
  TcpStatus close(TcpEndpoint, TcpTime now);
  // Releases the endpoint and resets the connection.
  TcpStatus abort(TcpEndpoint, TcpTime now);

  // Returns the error that ended the connection, once; Ok when there is none.
  TcpStatus take_error(TcpEndpoint);
  TcpReadiness readiness(TcpEndpoint) const;
  std::optional<std::string> local_address(TcpEndpoint) const;
  std::optional<std::string> peer_address(TcpEndpoint) const;
  std::optional<TcpInfo> info(TcpEndpoint, TcpTime now) const;

  // ---- options: set_default() for endpoints opened later; set_option() for one endpoint (all
  // options before connect() or listen(), then only the changeable ones). Both return Invalid for
  // an unknown name or a bad value.
  TcpStatus set_default(std::string_view option, std::int64_t value);
  TcpStatus set_option(TcpEndpoint, std::string_view option, std::int64_t value, TcpTime now);
  std::optional<std::int64_t> option(TcpEndpoint, std::string_view option) const;

  // ---- wire
  // Takes one IP datagram, up to 64 KiB: TCP for local addresses, and ICMP errors about own
  // segments.
  void input(std::span<const std::uint8_t> datagram, TcpTime now);
  // Mark datagrams that were received together: ACKs between these two calls are merged where that
  // is allowed ("ack-policy" 0).
  void begin_burst();
  void end_burst(TcpTime now);
  // Returns the oldest datagram to send; false when there is none, and always false with a sink.
  bool next_output(TcpDatagram* out);
  using Sink = void (*)(void* context, const TcpDatagram& datagram);
  void set_sink(Sink sink, void* context);
  using OnChange = void (*)(void* context, TcpEndpoint endpoint, std::uint32_t changes);
  void set_on_change(OnChange on_change, void* context);

  // ---- time
  // The time at which run() must be called even if nothing arrives; kTcpNever when no timer runs.
  TcpTime next_deadline() const;
  // Runs every timer due up to `now`, in the order of their deadlines, each at its own time.
  void run(TcpTime now);

  TcpCounters counters() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace urnic
