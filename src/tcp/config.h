// All settings of a TCP connection (tcp-library item 9), in two halves: those fixed when the
// connection opens, and those that may change while it runs.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::tcp {

enum class AckPolicy : std::uint8_t {
  PerBurst,     // one cumulative ACK per connection and receive burst (E-7), the RNIC's default
  EverySecond,  // RFC 9293 delayed ACK: every second full-sized segment, or after delayed_ack
  Immediate,    // every segment
};
// How the window reacts to losses and marks (congestion.h).
enum class CongestionControl : std::uint8_t {
  NewReno,  // RFC 5681, 6582
  Reno,     // RFC 5681 alone: without SACK, the first new ACK ends fast recovery
  Cubic,    // RFC 9438
  Dctcp,    // RFC 8257; needs ECN at both ends, else as NewReno
};
enum class EcnMode : std::uint8_t { Off, Accept, Request };

// Fixed when the connection opens. Some of it was announced to the peer; measurements and data in
// flight depend on the rest.
struct FrozenConfig {
  std::uint16_t mss = 1460;     // announced to the peer: MTU - IP header - 20
  std::uint16_t mss_clamp = 0;  // 0: none; upper bound on what we send per segment
  bool sack = true;
  bool timestamps = true;
  bool window_scaling = true;
  std::uint8_t window_shift = 7;     // our own shift when scaling (0..14)
  std::uint32_t initial_window = 0;  // bytes; 0: RFC 6928 (10 segments)
  Duration rto_initial = Duration::s(1);
  CongestionControl congestion = CongestionControl::NewReno;
  EcnMode ecn = EcnMode::Off;
  // Slow start opens cwnd by at most this many segments per ACK (the L of RFC 3465). For a peer
  // that acknowledges whole bursts (AckPolicy::PerBurst), set it to the number of segments in such
  // a burst.
  std::uint8_t slow_start_segments = 2;
  std::uint8_t quick_acks = 16;  // segments acknowledged at once after opening (EverySecond)
  // How losses are found and recovered from. If SACK is agreed: RACK (RFC 8985) instead of counting
  // (RFC 6675), tail loss probes (RFC 8985 7), and PRR for the window in recovery (RFC 6937).
  bool rack = true;
  bool tlp = true;
  bool prr = true;
  bool frto = true;      // detect spurious timeouts without timestamps (RFC 5682)
  bool hystart = false;  // leave slow start when round trips grow (RFC 9406); byte streams do
  bool undo = true;      // undo a cut that turns out to have been unnecessary (RFC 4015)
  // E-42, with SACK and RACK, if both ends support it: the receiver names a segment whose CRC was
  // wrong, and the sender resends it without reducing the window.
  bool name_corrupted = false;
  std::uint8_t ip_header = 20;  // 40 for IPv6; turns a path MTU into an MSS, and picks the
                                // default MSS of a peer that announces none (536, 1220)
  // Challenge ACKs in five seconds (RFC 5961 7), and the secret of this connection that decides
  // which share of them is left out (0: none is left out, for tests that count).
  std::uint8_t challenge_acks = 10;
  std::uint32_t ts_offset = 0;  // added to the timestamp clock (1 ms per tick)
  std::uint64_t challenge_key = 0;
};

// May change while the connection runs. Setting an option replaces the whole struct.
struct LiveConfig {
  Duration rto_min = Duration::ms(200);
  Duration rto_max = Duration::s(60);
  std::uint8_t syn_retries = 6;
  std::uint8_t data_retries = 15;
  std::uint8_t keepalive_probes = 9;
  AckPolicy ack_policy = AckPolicy::EverySecond;
  bool nagle = false;
  bool limited_transmit = true;
  bool black_hole = false;  // after repeated timeouts of full segments, send smaller ones (RFC
                            // 2923, 4821)
  bool dsack = true;        // report duplicates (RFC 2883), when SACK is agreed
  bool restart_after_idle = true;            // RFC 5681 4.1
  bool count_plain_dupacks = false;          // E-26
  std::uint32_t hole_limit = 256;            // 0: unlimited (byte streams)
  Duration user_timeout = Duration::zero();  // 0: off
  Duration keepalive = Duration::zero();     // idle time before the first probe; 0: off
  Duration keepalive_interval = Duration::s(75);
  Duration delayed_ack = Duration::ms(40);
  Duration time_wait = Duration::s(60);
};

struct Config : FrozenConfig, LiveConfig {
  LiveConfig& live() { return *this; }
  const LiveConfig& live() const { return *this; }

  // The largest window we ever offer, in bytes. It is in neither half: on an open connection it
  // follows the buffer that the connection has, which may be smaller than its option.
  // bound: received bytes of a connection that are not consumed, and those after gaps; setting:
  // receive_window; beyond: the window closes; a segment beyond it is acknowledged and dropped;
  // test: AutoTune.ThePerConnectionBoundHolds,
  // AutoTune.AReaderThatStopsClosesTheWindowAtTheBound_RFC9293_3_8_6,
  // WaitOver.MoreThanTheWindowWaitsAndArrivesCompleteAndInOrder
  std::uint32_t receive_buffer = 4u << 20;
};

}  // namespace urnic::tcp
