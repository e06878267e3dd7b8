// Read-only counters (D10). Plain values, monotonic unless said otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <span>
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

// The counters of a connection: name, what it counts. This list is the only one: the members below,
// the JSON document, `urnic stat` and what it gives to Prometheus are made from it.
#define URNIC_CONNECTION_COUNTERS(X)                                     \
  X(downgrades, "FAST to SLOW")                                          \
  X(upgrades, "SLOW to FAST")                                            \
  X(recovery_attempts, "segments refused in recovery")                   \
  X(immediate_dup_acks, "duplicate ACKs for refused segments")           \
  X(bytes_fast, "stream octets accepted on the FAST path")               \
  X(bytes_slow, "stream octets accepted on the SLOW path")               \
  X(detours, "gaps behind which FAST with `store` kept octets")          \
  X(bytes_detour, "stream octets kept so, on neither of the paths")      \
  X(bytes_copied, "octets copied for receiving, all copies")             \
  X(payload_placed, "ULP octets placed in memory of the consumer")       \
  X(holes_opened, "TCP holes opened")                                    \
  X(holes_closed, "TCP holes closed")                                    \
  X(empty_rq_drops, "Sends dropped for want of a receive")               \
  X(completion_wqe_writes, "receives updated for their completion")      \
  X(completion_cqe_writes, "completion queue entries written for Sends") \
  X(completion_partial_cqes, "of those: standing for several Sends")     \
  X(writes_sent, "RDMA Writes")                                          \
  X(sends_sent, "Sends")                                                 \
  X(reads_sent, "RDMA Reads asked for")                                  \
  X(read_responses_sent, "RDMA Reads served")                            \
  X(write_bytes_sent, "octets written")                                  \
  X(send_bytes_sent, "octets sent in Sends")                             \
  X(read_response_bytes_sent, "octets read by the peer")                 \
  X(write_bytes_received, "octets written by the peer")                  \
  X(send_bytes_received, "octets received in Sends")                     \
  X(read_response_bytes_received, "octets read")                         \
  X(sends_received, "Sends received")                                    \
  X(read_requests_received, "Read Requests received")                    \
  X(terminates_sent, "Terminates sent")                                  \
  X(terminates_received, "Terminates received")                          \
  X(segments_in, "TCP segments received")                                \
  X(segments_out, "TCP segments sent")                                   \
  X(retransmits, "segments sent again")                                  \
  X(rto_expirations, "retransmission time-outs")                         \
  X(dup_acks_in, "duplicate ACKs received (RFC 5681, 2)")                \
  X(dup_acks_out, "duplicate ACKs sent")

// The same for an engine.
#define URNIC_ENGINE_COUNTERS(X)                                                   \
  X(rx_frames, "frames received")                                                  \
  X(rx_bytes, "octets received")                                                   \
  X(tx_frames, "frames sent")                                                      \
  X(tx_bytes, "octets sent")                                                       \
  X(rx_bad_port, "frames the port refused")                                        \
  X(rx_bad_ip, "bad IP headers")                                                   \
  X(rx_bad_tcp_checksum, "segments with a wrong TCP checksum")                     \
  X(rx_fragments, "IP fragments, dropped")                                         \
  X(rx_no_connection, "segments of no connection")                                 \
  X(rx_tcp_dropped, "segments TCP did not accept")                                 \
  X(cookies_sent, "connection requests answered without keeping state (RFC 4987)") \
  X(cookies_taken, "connections that came of those")                               \
  X(challenge_acks, "challenge ACKs sent (RFC 5961)")                              \
  X(challenge_acks_withheld, "of those: not sent, for there were too many")        \
  X(rst_sent, "resets sent for segments of no connection")                         \
  X(turned_away, "connections not taken for want of descriptors")                  \
  X(address_conflicts, "other stations seen with an address of ours (RFC 5227)")   \
  X(tx_full, "times the port had no room")                                         \
  X(polls, "polls of the engine")                                                  \
  X(sleeps, "times the engine slept")                                              \
  X(wakeups, "times its descriptors woke it")                                      \
  X(connections_opened, "connections opened")                                      \
  X(connections_closed, "connections closed")                                      \
  X(connections_failed, "connections failed")

// Gauges of an engine: what there is now.
#define URNIC_ENGINE_GAUGES(X)                      \
  X(reassembly_bytes, "octets held for reassembly") \
  X(regions, "memory regions")

#define URNIC_COUNTER_MEMBER(name, help) std::uint64_t name = 0;

struct ConnectionStats {
  std::uint32_t qp_number = 0;  // 0: without a queue pair
  std::string local, peer;      // "address:port"
  std::string state;            // TCP state, or "startup"
  bool fast = false;            // ConnectionType 62 now
  std::string slow_reason;      // why it is SLOW, empty when FAST
  bool crc = true;
  std::string framing, framing_sent;  // policy of what is received and of what is sent (D6)
  std::array<std::uint64_t, kReasonCount> reasons{};
  // FPDUs by opcode: handed to TCP for the first time; received with a good CRC and taken, once
  // each.
  std::array<std::uint64_t, kOpcodeCount> fpdus_sent{}, fpdus_received{};
  URNIC_CONNECTION_COUNTERS(URNIC_COUNTER_MEMBER)
  std::uint32_t cwnd = 0, ssthresh = 0;            // gauges: octets
  std::uint32_t srtt_us = 0, rto_us = 0, mss = 0;  // gauges: microseconds, octets
};

struct EngineStats {
  std::string name, port, mac, addresses;
  std::uint64_t pid = 0, uptime_ms = 0;
  bool link_up = false;
  std::string link_reason;  // why it is not up, if known
  URNIC_ENGINE_COUNTERS(URNIC_COUNTER_MEMBER)
  URNIC_ENGINE_GAUGES(URNIC_COUNTER_MEMBER)
  // Totals of connections that have ended; live ones are in `connections`.
  ConnectionStats ended;
  std::vector<ConnectionStats> connections;
};

// One counter of S: ConnectionStats or EngineStats.
template <class S>
struct Counter {
  const char* name;
  const char* help;
  std::uint64_t S::*value;
};
URNIC_API std::span<const Counter<ConnectionStats>> connection_counters();
URNIC_API std::span<const Counter<EngineStats>> engine_counters();
URNIC_API std::span<const Counter<EngineStats>> engine_gauges();

// Adds every counter of `more`, those by reason and opcode included, to `*sum`.
URNIC_API void add_counters(ConnectionStats* sum, const ConnectionStats& more);

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
