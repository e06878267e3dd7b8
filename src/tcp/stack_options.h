// Options of the byte-stream stack, by number and by name (tcp-library item 9). All values are
// integers; times are in microseconds. An unknown option or an invalid value is rejected.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tcp/config.h"

namespace urnic::tcp {

enum class Option : std::uint8_t {
  // Read when the connection is opened:
  Sack,           // 0, 1
  Timestamps,     // 0, 1
  WindowScaling,  // 0, 1
  WindowShift,    // 0..14
  Mtu,            // IP bytes, 128..65535; the MSS follows
  MssClamp,       // 0 none; upper bound on what we send per segment
  InitialWindow,  // bytes; 0: RFC 6928
  RtoInitial,
  Ecn,                // 0 off, 1 accept, 2 request
  CongestionControl,  // 0 NewReno, 1 Reno, 2 CUBIC, 3 DCTCP
  SlowStartSegments,  // 1..255 (L of RFC 3465)
  QuickAcks,          // segments acknowledged at once after opening
  Rack,               // 0, 1: losses by time (RFC 8985), else by counting (RFC 6675)
  Tlp,                // 0, 1: tail loss probes (RFC 8985 7)
  Prr,                // 0, 1: proportional rate reduction (RFC 6937)
  Frto,               // 0, 1: detect spurious timeouts without timestamps (RFC 5682)
  HyStart,            // 0, 1: leave slow start when round trips grow (RFC 9406)
  Undo,               // 0, 1: undo unnecessary cuts of the window (RFC 4015)
  AutoTune,           // 0, 1: buffers begin small and grow with use, up to their options
  // Changeable at any time:
  ReceiveBuffer,  // bytes, exact; the window cannot exceed 65535 << shift
  SendBuffer,     // bytes, exact
  RtoMin,
  RtoMax,
  SynRetries,
  DataRetries,
  UserTimeout,  // 0 off
  Keepalive,    // idle time before the first probe; 0 off
  KeepaliveInterval,
  KeepaliveProbes,
  DelayedAck,
  AckPolicy,          // 0 per burst, 1 every second segment, 2 immediate
  Nagle,              // 0, 1
  LimitedTransmit,    // 0, 1
  BlackHole,          // 0, 1: full segments that never arrive become smaller (RFC 4821)
  Dsack,              // 0, 1
  RestartAfterIdle,   // 0, 1
  CountPlainDupacks,  // 0, 1 (E-26)
  HoleLimit,          // 0 unlimited
  TimeWait,
  FinWait2,       // how long a closed endpoint waits for the peer's FIN; 0: for ever
  OrphanTimeout,  // how long a closed endpoint may go without progress; 0: for ever
  Linger,         // -1: close() finishes the stream; 0: close() resets it
  Tos,            // 0..255; the stack sets the ECN bits
  PshRule,        // 0 end of burst: the send buffer is empty; 1 end of every write
  SynBacklog,     // listener: half-open connections at once
  SynCookies,     // 0, 1: listener: answer further SYNs statelessly (RFC 4987)
};

enum class PshRule : std::uint8_t { EndOfBurst, EndOfWrite };

// The configuration of an endpoint. Accepted endpoints inherit their listener's.
struct EndpointOptions {
  Config tcp;
  std::uint32_t mtu = 1500;
  std::uint32_t send_buffer = 1u << 20;
  Duration fin_wait_2 = Duration::s(60);
  Duration orphan_timeout = Duration::s(120);
  std::int32_t linger = -1;
  std::uint8_t tos = 0;
  PshRule psh_rule = PshRule::EndOfBurst;
  std::uint32_t syn_backlog = 256;
  bool syn_cookies = true;
  bool auto_tune = false;

  // A byte stream stores out-of-order bytes and needs no limit on holes (E-10).
  EndpointOptions() {
    tcp.hole_limit = 0;
    tcp.hystart = true;
  }
};

// Returns false for a value out of range, and then changes nothing.
bool set_option(EndpointOptions&, Option, std::int64_t value);
std::int64_t get_option(const EndpointOptions&, Option);
// Smallest and largest value.
struct OptionBounds {
  std::int64_t least = 0, most = 0;
};
OptionBounds option_bounds(Option);
inline constexpr std::size_t kOptions = static_cast<std::size_t>(Option::SynCookies) + 1;
// True if the option can be changed on an open connection.
bool changeable_when_open(Option);
// "sack", "window-shift", ...
std::optional<Option> option_from_name(std::string_view name);
std::string_view option_name(Option);

}  // namespace urnic::tcp
