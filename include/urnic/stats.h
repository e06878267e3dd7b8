// Read-only counters (D10). Plain values, monotonic unless said otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "urnic/status.h"

namespace urnic {

// Why InLogic decided as it did; one counter each (docs/fast-slow.md has the table).
inline constexpr std::size_t kReasonCount = 15;
URNIC_API const char* reason_label(std::size_t index);

// FPDUs are counted by the RDMAP opcode in them (RFC 5040, 4.1): "write", "read request", "read
// response", "send", "send invalidate", "send solicited", "send invalidate solicited", "terminate".
inline constexpr std::size_t kOpcodeCount = 8;
URNIC_API const char* opcode_label(std::size_t index);

struct ConnectionStats {
  std::uint32_t qp_number = 0;
  std::string local, peer;  // "address:port"
  std::string state;        // TCP state, or "startup"
  bool fast = false;        // ConnectionType 62 now
  std::string slow_reason;  // why it is SLOW, empty when FAST
  bool crc = true;
  std::string framing, framing_sent;  // policy of what is received and of what is sent (D6)
  // FAST / SLOW
  std::uint64_t downgrades = 0, upgrades = 0, recovery_attempts = 0, immediate_dup_acks = 0;
  std::array<std::uint64_t, kReasonCount> reasons{};
  std::uint64_t bytes_fast = 0, bytes_slow = 0;  // stream octets accepted on each path
  std::uint64_t bytes_copied = 0;                // octets copied for receiving, all copies
  std::uint64_t payload_placed = 0;              // ULP octets placed in memory of the consumer
  std::uint64_t holes_opened = 0, holes_closed = 0, empty_rq_drops = 0;
  // Writes for the completion of received Sends (specification 9.4): receives updated, entries put
  // into completion queues, and how many of those stand for several Sends.
  std::uint64_t completion_wqe_writes = 0, completion_cqe_writes = 0, completion_partial_cqes = 0;
  // messages
  std::uint64_t writes_sent = 0, sends_sent = 0, reads_sent = 0, read_responses_sent = 0;
  std::uint64_t write_bytes_sent = 0, send_bytes_sent = 0, read_response_bytes_sent = 0;
  std::uint64_t write_bytes_received = 0, send_bytes_received = 0, read_response_bytes_received = 0;
  std::uint64_t sends_received = 0, read_requests_received = 0, terminates_sent = 0,
                terminates_received = 0;
  // FPDUs by opcode: handed to TCP for the first time; received with a good CRC and taken, once
  // each
  std::array<std::uint64_t, kOpcodeCount> fpdus_sent{}, fpdus_received{};
  // TCP
  std::uint64_t segments_in = 0, segments_out = 0, retransmits = 0, rto_expirations = 0,
                dup_acks_in = 0, dup_acks_out = 0;
  std::uint32_t cwnd = 0, ssthresh = 0, srtt_us = 0, rto_us = 0, mss = 0;  // gauges
};

struct EngineStats {
  std::string name, port, mac, addresses;
  std::uint64_t pid = 0, uptime_ms = 0;
  bool link_up = false;
  std::uint64_t rx_frames = 0, rx_bytes = 0, tx_frames = 0, tx_bytes = 0;
  std::uint64_t rx_bad_port = 0, rx_bad_ip = 0, rx_bad_tcp_checksum = 0, rx_fragments = 0,
                rx_no_connection = 0, rx_tcp_dropped = 0, tx_full = 0;
  // Connection requests answered without keeping state, for want of room for half-open ones (RFC
  // 4987), and those that came of it.
  std::uint64_t cookies_sent = 0, cookies_taken = 0;
  // TCP, RFC 5961: answers to segments that may be forged, and those withheld by the limit.
  std::uint64_t challenge_acks = 0, challenge_acks_withheld = 0;
  std::uint64_t polls = 0, sleeps = 0, wakeups = 0;
  std::uint64_t connections_opened = 0, connections_closed = 0, connections_failed = 0;
  std::uint64_t reassembly_bytes = 0;  // gauge
  std::uint64_t regions = 0;           // gauge
  // Totals of connections that have ended; live ones are in `connections`.
  ConnectionStats ended;
  std::vector<ConnectionStats> connections;
};

// One JSON document with every counter under its name here; what `urnic stat --json` prints and the
// stat socket of a process sends.
URNIC_API std::string stats_to_json(const EngineStats&);
// The other way round. Members that are missing are 0 or empty, unknown ones are ignored, so that
// two versions can talk. Errors: not JSON, or a member of another type.
URNIC_API Result<EngineStats> stats_from_json(std::string_view text);
// Folder of this user's stat sockets, <pid>.sock or <pid>-<n>.sock each: $XDG_RUNTIME_DIR/urnic,
// else /tmp/urnic-<uid>.
URNIC_API std::string stats_directory();

}  // namespace urnic
