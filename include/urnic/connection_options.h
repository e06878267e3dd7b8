// Options of one connection, set by the connecting and by the accepting program. Plain values that
// any thread may use, except for borrowed members; urnic/verbs.h includes this header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "urnic/qp_attributes.h"

namespace urnic {

class Binding;

// Options that only iWARP connections have.
struct IwarpConnectionOptions {
  std::optional<ConnectionType> type;                  // initiated FAST or SLOW
  std::optional<std::uint32_t> max_recovery_attempts;  // R-42; at least 1 without markers
  // Fail with Errc::unsupported if the connection would be SLOW from the start and stay so: over
  // the kernel's TCP (reason "no-segments"), without CRC, or if SLOW was requested.
  bool require_fast = false;
  std::optional<bool> crc;  // of MPA; off only if both ends request it (RFC 5044, 7.1.1)
  // Send probes while the connection is idle, to detect that the peer has vanished (RFC 9293,
  // 3.8.4; RFC 1122, 4.2.3.6): after the setting `keepalive_s`. If not set: the setting
  // `keepalive`.
  std::optional<bool> keepalive;
  // Traffic class of the packets this end sends, 0 to 255: the upper six bits are the DSCP; TCP
  // controls the ECN bits.
  std::uint8_t traffic_class = 0;
  // Delay in ms, 0 to 60000, that applies when the peer has ended the connection in order and
  // nothing of ours is outstanding. The queue pair keeps its state for this time, unless this end
  // ends the connection too; only then are its receives flushed and the event delivered. So a
  // program can poll the last messages before the flushes, as with an InfiniBand peer, which
  // disappears without a message. 0: no delay.
  int close_wait_ms = 0;
};

// Options that only RoCE connections have: how often requests are repeated (IB-73, IB-74), 0 to 7
// (default 7), when, and what else the ends announce to each other.
struct RoceConnectionOptions {
  // How often both ends repeat a request without a response. Connecting only: its REQ sets the
  // value for both ends.
  std::optional<std::uint8_t> retry_count;
  // How often the peer repeats a request for which this end has no receive; 7: without limit.
  std::optional<std::uint8_t> rnr_retry;
  // When this end repeats a request without a response, as a code, 0 to 31, as in QpAttributes. If
  // not set: computed from what both ends announce about the path (IB-128).
  std::optional<std::uint8_t> ack_timeout;
  // When the peer repeats a request for which this end had no receive, as a code, 0 to 31, as in
  // QpAttributes. If not set: 12, which is 640 us.
  std::optional<std::uint8_t> min_rnr_timer;
  // The traffic class of IP (DSCP and ECN as in the header), 0 to 255, for packets that this end
  // sends; the connecting end requests it from the peer as well. If not set: connecting, 0;
  // accepting, the value that the peer requested.
  std::optional<std::uint8_t> traffic_class;
  // The value of the end-to-end flow control bit sent to the peer. If not set: whether this end
  // reports how many receives it has.
  std::optional<bool> flow_control;
  // Only when accepting a request for datagrams: the Q_Key that the datagrams must carry. If not
  // set: that of the queue pair.
  std::optional<std::uint32_t> qkey;
};

// Options of one connection, set by the local program at set-up; options that are not set come from
// the Config.
struct ConnectionOptions {
  std::optional<std::uint16_t> ird, ord;  // reads served / outstanding; RoCE: up to 16 are used
  // Borrowed for the call. iWARP: at most 508 bytes (512 on MPA revision 1). RoCE: at most 56 to
  // connect and 196 to accept (136 for datagrams). RoCE messages do not carry the length, so the
  // peer always gets the full size, padded with zeroes.
  std::span<const std::uint8_t> private_data;
  int timeout_ms = 10000;  // from the call (iWARP: the SYN) to established
  // Connecting only: the local address and port; borrowed for the call, and of the transport of the
  // queue pair. If not set: the address that Device::source_for() returns, any port. RoCE: the port
  // is only announced to the peer and need not be free.
  const Binding* source = nullptr;
  // Connecting only: how long, 0 to 100 ms, to retry while the peer refuses because it does not
  // listen yet. The request is repeated every few milliseconds, so `refused` arrives late.
  int refusal_retry_ms = 0;
  IwarpConnectionOptions iwarp;
  RoceConnectionOptions roce;
};

}  // namespace urnic
