// What is chosen with one connection, by who connects and by who accepts. Values, to be used from
// any thread, but for what is borrowed; urnic/verbs.h includes this.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "urnic/qp_attributes.h"

namespace urnic {

class Binding;

// What of a connection is iWARP's alone.
struct IwarpConnectionOptions {
  std::optional<ConnectionType> type;                  // initiated FAST or SLOW
  std::optional<std::uint32_t> max_recovery_attempts;  // R-42; at least 1 without markers
  // Fail with Errc::unsupported instead of a connection that is SLOW from the start and stays so:
  // over the kernel's TCP (reason "no-segments"), without CRC, or when asked to be.
  bool require_fast = false;
  std::optional<bool> crc;  // of MPA; off only if both ends say so (RFC 5044, 7.1.1)
  // Probes while the connection is idle, so that a peer that has vanished is noticed (RFC 9293,
  // 3.8.4; RFC 1122, 4.2.3.6): after `keepalive_s` of the Config. Left alone: its `keepalive`.
  std::optional<bool> keepalive;
  // The upper six bits are the DSCP of what this end sends, 0 to 255; TCP has the ECN bits.
  std::uint8_t traffic_class = 0;
  // When the peer has ended the connection in order and nothing of ours is outstanding, the queue
  // pair stays as it is for so long, 0 to 60000, unless this end ends it too: its receives are
  // flushed, and the program is told, only then. So what came last can be polled alone, as with a
  // peer of InfiniBand, which goes without a word. 0: at once.
  int close_wait_ms = 0;
};

// These are RoCE's alone: how often requests are repeated (IB-73, IB-74), 0 to 7 (left alone: 7),
// when, and what else the ends tell each other.
struct RoceConnectionOptions {
  // Of both ends, those that nobody answers; connecting only, as its request says it for both.
  std::optional<std::uint8_t> retry_count;
  // Of the peer, those that find no receive at this end; 7: any number of times.
  std::optional<std::uint8_t> rnr_retry;
  // Of this end, those that nobody has answered in time, as a code, 0 to 31, as in QpAttributes.
  // Left alone: what the ends say of the way between them (IB-128).
  std::optional<std::uint8_t> ack_timeout;
  // The peer's that find no receive at this end come again after this time, as a code, 0 to 31, as
  // in QpAttributes. Left alone: 12, which is 640 us.
  std::optional<std::uint8_t> min_rnr_timer;
  // Of IP (DSCP and ECN as in the header), 0 to 255, for what this end sends; connecting, the peer
  // is asked to use it as well. Left alone: 0 to connect, and what the peer has asked for to
  // accept.
  std::optional<std::uint8_t> traffic_class;
  // The peer is told so of end-to-end flow control. Left alone: it is told whether this end says
  // how many receives it has.
  std::optional<bool> flow_control;
  // Accepting a request for datagrams only: the Q_Key that they are to bring. Left alone: that of
  // the queue pair.
  std::optional<std::uint32_t> qkey;
};

// Attributes of one connection, chosen by the local consumer at set-up; anything left alone comes
// from the Config.
struct ConnectionOptions {
  std::optional<std::uint16_t> ird, ord;  // reads served / outstanding; RoCE: up to 16 are used
  // Borrowed for the call. iWARP: at most 508 bytes (512 on MPA revision 1). RoCE: at most 56 to
  // connect and 196 to accept (136 for datagrams); its messages say no length, so the peer gets as
  // many bytes in any case, zeroes behind what was given here.
  std::span<const std::uint8_t> private_data;
  int timeout_ms = 10000;  // from the call (iWARP: the SYN) to established
  // Connecting only: from this address and port; borrowed for the call, and of the transport of the
  // queue pair. Left alone: the address that Device::source_for() says, any port. RoCE: the port is
  // what the peer is told, and need not be free.
  const Binding* source = nullptr;
  // Connecting only: for so long, 0 to 100, a peer that refuses may yet begin to listen; it is
  // asked again every few milliseconds, and `refused` comes late.
  int refusal_retry_ms = 0;
  IwarpConnectionOptions iwarp;
  RoceConnectionOptions roce;
};

}  // namespace urnic
