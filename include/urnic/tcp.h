// TCP as a library: IP datagrams in, IP datagrams out, byte-stream endpoints in between. It opens
// no descriptor, reads no clock, starts no thread and knows nothing of where datagrams come from,
// so that it runs on anything that carries them, and in virtual time: the same inputs give the same
// datagrams, byte for byte. (pkg-config urnic-tcp, CMake target urnic::tcp;
// examples/virtual_time.cpp.)
//
//   TcpStack s({.addresses = {"10.0.0.1"}, .seed = secret});
//   in comes a datagram          s.input(datagram, now)
//   the time next_deadline()     s.run(now)
//   after each of these calls    while (s.next_output(&d)) send(d.bytes)
//   what an endpoint has to say  readiness(), or the call-back of set_on_change()
//
// TCP is that of RFC 9293 with window scaling, timestamps and PAWS (RFC 7323), SACK and D-SACK
// (2018, 2883), RACK-TLP (8985), PRR (6937, 9937), NewReno, CUBIC and DCTCP (6582, 9438, 8257), ECN
// (3168), HyStart++ (9406), F-RTO and undo (5682, 4015), SYN cookies (4987), challenge ACKs (5961),
// keyed sequence numbers, timestamps and ports (6528, 6056); path MTU by ICMP (1191, 8201). IPv4
// and IPv6; fragments are not reassembled, urgent data is delivered in line.
//
// Units. Bytes, unless said otherwise. Times are nanoseconds of a monotonic clock with any origin;
// an earlier `now` than the call before counts as that one. Options that are times are in
// microseconds.
//
// Ownership. The stack owns everything behind an endpoint; an endpoint is a number, which means
// nothing to another stack. One that is not (or no longer) valid is answered with Invalid, and
// nothing is done. Bytes given to write() and input() are copied; those of a datagram are lent,
// see TcpDatagram. The destructor sends nothing.
//
// Threads. One thread at a time for one stack; several stacks have nothing in common. Call-backs
// run in the thread of the call that caused them, at its end, and may call every function of the
// stack.
//
// Errors are values. No function throws, but for memory that cannot be had (std::bad_alloc), which
// leaves a stack that may only be destroyed.
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
  WouldBlock,   // nothing to read, no room to write, nobody to accept
  InProgress,   // the connection is being opened
  EndOfStream,  // the peer has sent all it will
  Reset,        // by the peer
  Refused,      // nobody listens there
  TimedOut,     // retries, keep-alive or user timeout ran out
  Unreachable,  // an ICMP error ended the attempt, or explains why it failed
  BrokenPipe,   // this side may not write any more
  NotConnected,
  AlreadyConnected,
  AddressInUse,
  NoAddress,  // not an address of this stack, or none of the family
  Invalid,    // an argument, option or endpoint that makes no sense here
};
URNIC_API const char* to_string(TcpStatus);

// `bytes` is meaningful with Ok.
struct TcpIo {
  TcpStatus status = TcpStatus::Invalid;
  std::size_t bytes = 0;
};

// What is true of an endpoint now.
struct TcpReadiness {
  std::size_t readable = 0;  // bytes read() would return
  std::size_t writable = 0;  // bytes write() would take
  bool acceptable = false;   // accept() would succeed
  bool connected = false;
  bool peer_closed = false;  // end of stream, perhaps behind `readable` bytes
  bool error = false;        // take_error() has something
};

// What has changed, or-ed.
enum TcpChange : std::uint32_t {
  kTcpReadable = 1,
  kTcpWritable = 2,
  kTcpAcceptable = 4,
  kTcpConnected = 8,
  kTcpPeerClosed = 16,
  kTcpError = 32,
};

// A whole IP datagram to send, checksums included. `bytes` is valid until the next call of
// next_output(), or during the call-back it is given to; `time` is when it leaves.
struct TcpDatagram {
  std::span<const std::uint8_t> bytes;
  TcpTime time{};
};

// A connection, looked at.
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
  std::vector<std::string> addresses;  // own ones, "10.0.0.1", "fd00::1"; add_address() adds more
  // Every key and choice follows from it. Random and secret in production (getrandom); any number
  // where runs are to repeat.
  std::uint64_t seed = 1;
  bool verify_checksums = true;  // of received TCP and ICMP
  std::uint8_t ttl = 64;
  std::uint16_t port_first = 32768, port_last = 60999;  // ephemeral ports
  std::uint64_t memory_limit = 256u << 20;  // of all buffers with option "auto-tune" together
};

// Names of all options, with the bounds of their values. What each means and its default:
// docs/tcp.md. Values are integers; times are microseconds, sizes bytes, switches 0 or 1.
struct TcpOption {
  std::string_view name;
  std::int64_t least = 0, most = 0;
  bool changeable = false;  // also on an open connection
};
URNIC_API std::vector<TcpOption> tcp_options();

class URNIC_API TcpStack {
 public:
  // An address that cannot be parsed is left out: add_address() tells.
  explicit TcpStack(const TcpSettings& settings = {});
  ~TcpStack();
  TcpStack(TcpStack&&) noexcept;
  TcpStack& operator=(TcpStack&&) noexcept;

  bool add_address(std::string_view address);

  // ---- endpoints. Addresses are texts, "10.0.0.1:80", "[fd00::1]:80".
  // A new one, not connected.
  TcpEndpoint open();
  // "0.0.0.0:80", "[::]:80": any own address; port 0: chosen later.
  TcpStatus bind(TcpEndpoint, std::string_view local);
  // Accept connections to the bound address. `backlog` >= 1: finished ones waiting for accept().
  TcpStatus listen(TcpEndpoint, unsigned backlog);
  // The oldest waiting connection; None when there is none.
  TcpEndpoint accept(TcpEndpoint listener, TcpTime now);
  // InProgress; connected or error follows.
  TcpStatus connect(TcpEndpoint, std::string_view remote, TcpTime now);

  // Ok with bytes > 0 (or a `dst` of none), WouldBlock, EndOfStream, or the pending error.
  TcpIo read(TcpEndpoint, std::span<std::uint8_t> dst, TcpTime now);
  // As read(), from `skip` bytes on, taking nothing; errors stay pending.
  TcpIo peek(TcpEndpoint, std::span<std::uint8_t> dst, std::size_t skip = 0) const;
  // Takes what fits in the send buffer. `more`: what follows belongs to it; less than a segment
  // waits, until push(), a write without `more`, or 200 ms have passed.
  TcpIo write(TcpEndpoint, std::span<const std::uint8_t> src, TcpTime now, bool more = false);
  TcpStatus push(TcpEndpoint, TcpTime now);
  // The FIN follows what was written.
  TcpStatus shutdown_write(TcpEndpoint, TcpTime now);
  // What is there and what comes is acknowledged and discarded.
  TcpStatus shutdown_read(TcpEndpoint, TcpTime now);
  // Gives the endpoint back; the stream is finished inside (FIN, retransmissions, TIME-WAIT). With
  // unread bytes, or bytes that come later, it is reset instead (RFC 2525 2.17).
  TcpStatus close(TcpEndpoint, TcpTime now);
  // Gives the endpoint back and resets the connection.
  TcpStatus abort(TcpEndpoint, TcpTime now);

  // The error that ended the connection, once; Ok when there is none.
  TcpStatus take_error(TcpEndpoint);
  TcpReadiness readiness(TcpEndpoint) const;
  std::optional<std::string> local_address(TcpEndpoint) const;
  std::optional<std::string> peer_address(TcpEndpoint) const;
  std::optional<TcpInfo> info(TcpEndpoint, TcpTime now) const;

  // ---- options: of endpoints opened later; of one (any before connect() or listen(), then the
  // changeable ones); Invalid for a name or value that is not known.
  TcpStatus set_default(std::string_view option, std::int64_t value);
  TcpStatus set_option(TcpEndpoint, std::string_view option, std::int64_t value, TcpTime now);
  std::optional<std::int64_t> option(TcpEndpoint, std::string_view option) const;

  // ---- wire
  // One IP datagram, up to 64 KiB; for own addresses TCP, and ICMP errors about own segments.
  void input(std::span<const std::uint8_t> datagram, TcpTime now);
  // Datagrams that were received together: between these two, ACKs that may be joined are
  // ("ack-policy" 0).
  void begin_burst();
  void end_burst(TcpTime now);
  // The oldest datagram to send; false when there is none. With a sink there never is.
  bool next_output(TcpDatagram* out);
  using Sink = void (*)(void* context, const TcpDatagram& datagram);
  void set_sink(Sink sink, void* context);
  using OnChange = void (*)(void* context, TcpEndpoint endpoint, std::uint32_t changes);
  void set_on_change(OnChange on_change, void* context);

  // ---- time
  // When run() must be called even if nothing arrives; kTcpNever when no timer runs.
  TcpTime next_deadline() const;
  // Every timer due up to `now`, in the order of their deadlines and each at its own time.
  void run(TcpTime now);

  TcpCounters counters() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace urnic
