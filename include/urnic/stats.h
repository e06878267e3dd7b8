// Read-only counters (D10). QueuePair::stats and Device::stats return copies: the caller owns them,
// and later events do not change them.
//
// Units: a name with `bytes` counts bytes, with `_us` microseconds, with `_ms` milliseconds; every
// other name counts what its help text says. Counters have 64 bits, start at 0 with the connection
// or engine and never decrease; gauges, marked as such, hold the present value. The functions keep
// no state: any thread may call them, and they throw only std::bad_alloc.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "urnic/status.h"

namespace urnic {

// The reasons of InLogic's decisions; one counter each (docs/fast-slow.md has the table). Returns a
// static text; "?" from kReasonCount on.
inline constexpr std::size_t kReasonCount = 15;
URNIC_API const char* reason_label(std::size_t index);

// FPDUs are counted by the RDMAP opcode in them (RFC 5040, 4.1; RFC 7306): "write", "read request",
// "read response", "send", "send invalidate", "send solicited", "send invalidate solicited",
// "terminate", "immediate", "immediate solicited", "atomic request", "atomic response"; "?" from
// kOpcodeCount on.
inline constexpr std::size_t kOpcodeCount = 12;
URNIC_API const char* opcode_label(std::size_t index);

// ---- a connection --------------------------------------------------------------------------
//
// Counters of verbs (queues, memory, completions) are the same for every transport; the counters of
// iWARP are in a struct of their own. Each counter is declared only in these lists: the members,
// the JSON document, `urnic stat` and its Prometheus output are generated from them.

// Work, memory and completions of a queue pair. Atomics count as Reads, without bytes. A Write with
// Immediate counts as a Write; on iWARP, where the Immediate Data is a message of its own, also as
// a Send. RoCE counts a message when it has arrived completely.
#define URNIC_VERBS_COUNTERS(X)                                              \
  X(writes_sent, "RDMA Writes sent")                                         \
  X(sends_sent, "Sends sent")                                                \
  X(reads_sent, "RDMA Reads requested")                                      \
  X(read_responses_sent, "RDMA Reads answered")                              \
  X(write_bytes_sent, "bytes sent by RDMA Write")                            \
  X(send_bytes_sent, "bytes sent in Sends")                                  \
  X(read_response_bytes_sent, "bytes that the peer read")                    \
  X(write_bytes_received, "bytes that the peer wrote")                       \
  X(send_bytes_received, "bytes received in Sends")                          \
  X(read_response_bytes_received, "bytes received by RDMA Read")             \
  X(sends_received, "Sends received")                                        \
  X(read_requests_received, "Read Requests received")                        \
  X(payload_placed, "payload bytes placed in the program's memory")          \
  X(completion_wqe_writes, "receives updated with the completion of a Send") \
  X(completion_cqe_writes, "completion queue entries written for Sends")     \
  X(completion_shared_cqes, "completion queue entries that stand for several Sends")

// FAST and SLOW (docs/fast-slow.md).
#define URNIC_FAST_SLOW_COUNTERS(X)                                        \
  X(downgrades, "changes from FAST to SLOW")                               \
  X(upgrades, "changes from SLOW to FAST")                                 \
  X(recovery_attempts, "segments dropped in recovery and requested again") \
  X(immediate_dup_acks, "duplicate ACKs for refused segments")             \
  X(bytes_fast, "stream bytes accepted on the FAST path")                  \
  X(bytes_slow, "stream bytes accepted on the SLOW path")                  \
  X(detours, "TCP holes after which a FAST connection stored data")        \
  X(bytes_detour, "stream bytes stored after TCP holes, on neither path")  \
  X(bytes_copied, "bytes copied while receiving, every copy counted")      \
  X(holes_opened, "TCP holes opened")                                      \
  X(holes_closed, "TCP holes closed")                                      \
  X(empty_rq_drops, "Sends dropped because no receive was posted")         \
  X(receive_waits, "Sends that waited for a receive to be posted")

// DDP and RDMAP (RFC 5041, RFC 5040).
#define URNIC_DDP_COUNTERS(X)           \
  X(terminates_sent, "Terminates sent") \
  X(terminates_received, "Terminates received")

// TCP.
#define URNIC_TCP_COUNTERS(X)                          \
  X(segments_in, "TCP segments received")              \
  X(segments_out, "TCP segments sent")                 \
  X(retransmits, "TCP segments retransmitted")         \
  X(rto_expirations, "retransmission time-outs")       \
  X(dup_acks_in, "duplicate ACKs received (RFC 5681)") \
  X(dup_acks_out, "duplicate ACKs sent")

// RoCE: packets of the InfiniBand transport; requests of this end and of the peer.
#define URNIC_ROCE_COUNTERS(X)                                                               \
  X(requests_sent, "request packets sent, including repeated ones")                          \
  X(requests_repeated, "request packets sent again")                                         \
  X(acks_received, "responses that acknowledged something")                                  \
  X(responses_duplicate, "responses without anything new")                                   \
  X(responses_ghost, "responses that match no outstanding request")                          \
  X(responses_malformed, "responses discarded because of wrong contents")                    \
  X(response_timeouts, "expirations of the transport timer")                                 \
  X(sequence_naks_received, "Sequence NAKs received and acted upon")                         \
  X(implied_naks, "gaps in responses detected and acted upon")                               \
  X(rnr_naks_received, "RNR NAKs received and acted upon")                                   \
  X(retries_exhausted, "queue pairs that ended because all retries were in vain")            \
  X(rnr_retries_exhausted, "queue pairs that ended because all RNR retries were in vain")    \
  X(probes_sent, "request packets repeated as probes")                                       \
  X(probe_losses, "losses detected by the response to a probe")                              \
  X(requests_repeated_selectively, "lost request packets repeated alone (selective repeat)") \
  X(spurious_repeats, "request packets repeated needlessly: the first was only late")        \
  X(sacks_received, "SACKs received")                                                        \
  X(sacks_invalid, "SACKs for packets that were never sent")                                 \
  X(responses_held, "responses after a lost one, stored")                                    \
  X(response_parts_requested, "missing parts of responses requested again")                  \
  X(requests_executed, "request packets executed")                                           \
  X(requests_duplicate, "duplicate request packets")                                         \
  X(requests_out_of_sequence, "request packets after a lost one")                            \
  X(requests_held, "request packets stored until the gap before them closed")                \
  X(requests_placed, "request packets after a gap, with payload placed immediately")         \
  X(requests_parked, "request packets stored until a receive was posted")                    \
  X(gap_recoveries, "gaps after which requests were stored")                                 \
  X(roce_downgrades, "RoCE changes from FAST to SLOW")                                       \
  X(store_full_downgrades, "RoCE downgrades because the store was full, not too many gaps")  \
  X(roce_upgrades, "RoCE changes from SLOW to FAST")                                         \
  X(requests_too_late, "repeated requests that can no longer be answered")                   \
  X(acks_sent, "ACKs sent")                                                                  \
  X(sacks_sent, "SACKs sent")                                                                \
  X(sequence_naks_sent, "Sequence NAKs sent")                                                \
  X(rnr_naks_sent, "RNR NAKs sent because no receive was posted")                            \
  X(requests_refused, "requests refused; each ended its queue pair")                         \
  X(read_packets_sent, "packets of Read responses sent")                                     \
  X(ce_marks_received, "packets received with a CE mark")                                    \
  X(cnps_sent, "CNPs sent for CE marks, at most one in 50 us")                               \
  X(cnps_received, "CNPs received")                                                          \
  X(cnps_ignored, "CNPs ignored: nothing in flight, or already known")                       \
  X(window_reductions, "reductions of the window or rate, for any reason")                   \
  X(requests_too_long, "UD: requests longer than the path MTU, not sent")                    \
  X(requests_dropped, "UC and UD: request packets dropped")                                  \
  X(messages_lost, "UC: messages with a lost packet")

#define URNIC_COUNTER_MEMBER(name, help) std::uint64_t name = 0;

struct VerbsStats {
  URNIC_VERBS_COUNTERS(URNIC_COUNTER_MEMBER)
};

struct TcpStats {
  URNIC_TCP_COUNTERS(URNIC_COUNTER_MEMBER)
  std::uint32_t cwnd = 0, ssthresh = 0;            // gauges: bytes
  std::uint32_t srtt_us = 0, rto_us = 0, mss = 0;  // gauges: microseconds, bytes
};

struct MpaStats {
  bool crc = true;
  std::string framing, framing_sent;  // policy for received and for sent FPDUs (D6)
};

struct DdpStats {
  URNIC_DDP_COUNTERS(URNIC_COUNTER_MEMBER)
  // FPDUs by opcode. Sent: handed to TCP for the first time. Received: with a good CRC and
  // accepted, each counted once.
  std::array<std::uint64_t, kOpcodeCount> fpdus_sent{}, fpdus_received{};
};

// The statistics of a connection that only iWARP has.
struct IwarpStats {
  bool fast = false;        // ConnectionType is 62 now
  std::string slow_reason;  // why it is SLOW; empty when FAST
  URNIC_FAST_SLOW_COUNTERS(URNIC_COUNTER_MEMBER)
  std::array<std::uint64_t, kReasonCount> reasons{};
  DdpStats ddp;
  MpaStats mpa;
  TcpStats tcp;
};

// XRC: causes of `requests_refused` (IB-163).
#define URNIC_XRC_COUNTERS(X)                                                    \
  X(no_queue, "requests for an unknown XRC queue, or not that of their message") \
  X(wrong_domain, "requests for a queue of another XRC domain")

struct XrcStats {
  URNIC_XRC_COUNTERS(URNIC_COUNTER_MEMBER)
};

// The statistics of a queue pair that only RoCE has.
struct RoceStats {
  bool fast = false;        // ConnectionType now (S-1); only RC can be FAST
  bool selective = false;   // the peer has agreed to selective repeat (S-7)
  std::string slow_reason;  // why it is SLOW: "initiated-slow", "drop", "recovery-exhausted",
                            // "store-full"; empty when FAST, or with another service
  URNIC_ROCE_COUNTERS(URNIC_COUNTER_MEMBER)
  XrcStats xrc;
};

struct ConnectionStats {
  std::uint32_t qp_number = 0;  // 0: without a queue pair
  std::string local, peer;  // "address:port"; RoCE: `peer` is "address:QP number", empty with UD
  std::string state;        // of the connection; of the queue pair if there is no connection
  std::string transport = "iwarp";  // or "roce"
  VerbsStats verbs;
  IwarpStats iwarp;
  RoceStats roce;
};

// ---- an engine -----------------------------------------------------------------------------

#define URNIC_ENGINE_COUNTERS(X)                                                        \
  X(polls, "polls of the engine")                                                       \
  X(sleeps, "times that the engine slept")                                              \
  X(wakeups, "wake-ups of the engine by its descriptors")                               \
  X(connections_opened, "connections opened")                                           \
  X(connections_closed, "connections closed")                                           \
  X(connections_failed, "connections failed")                                           \
  X(peers_denied, "connection requests refused because of their address (allow, deny)") \
  X(peers_over_limit, "connection requests refused because of a listener's limits")

// Frames of the port.
#define URNIC_PORT_COUNTERS(X)                   \
  X(rx_frames, "frames received")                \
  X(rx_bytes, "bytes received")                  \
  X(tx_frames, "frames sent")                    \
  X(tx_bytes, "bytes sent")                      \
  X(rx_bad_port, "frames that the port refused") \
  X(tx_full, "times that the port had no room")  \
  X(link_losses, "times that the link was lost") \
  X(syscalls, "system calls for data")

// IP and below.
#define URNIC_NET_COUNTERS(X)              \
  X(rx_bad_ip, "bad IP headers")           \
  X(rx_fragments, "IP fragments, dropped") \
  X(address_conflicts, "other hosts seen with an address of this device (RFC 5227)")

// iWARP outside its connections: segments that match no connection, and requests for new ones.
#define URNIC_IWARP_HOST_COUNTERS(X)                                              \
  X(rx_bad_tcp_checksum, "segments with a wrong TCP checksum")                    \
  X(rx_no_connection, "segments that belong to no connection")                    \
  X(rx_tcp_dropped, "segments that TCP did not accept")                           \
  X(cookies_sent, "SYN cookies sent (RFC 4987)")                                  \
  X(cookies_accepted, "connections established from a SYN cookie")                \
  X(challenge_acks, "challenge ACKs sent (RFC 5961)")                             \
  X(challenge_acks_withheld, "challenge ACKs not sent because of the rate limit") \
  X(rst_sent, "resets sent for segments of no connection")                        \
  X(connections_refused, "connections refused: too many, or no file descriptor left")

// RoCE outside its queue pairs.
#define URNIC_ROCE_HOST_COUNTERS(X)                                                \
  X(rx_roce, "RoCE datagrams received")                                            \
  X(tx_roce, "RoCE packets sent")                                                  \
  X(tx_unroutable, "packets lost here because the next hop did not answer")        \
  X(rx_roce_malformed, "dropped: impossible lengths")                              \
  X(rx_bad_icrc, "dropped: wrong ICRC")                                            \
  X(rx_bad_version, "dropped: unknown transport version")                          \
  X(rx_no_queue_pair, "dropped: unknown queue pair number")                        \
  X(rx_wrong_state, "dropped: the queue pair's state accepts no packets")          \
  X(rx_wrong_service, "dropped: wrong transport service")                          \
  X(rx_bad_pkey, "dropped: wrong P_Key")                                           \
  X(rx_wrong_address, "dropped: not from the peer of the queue pair")              \
  X(rx_bad_qkey, "dropped: wrong Q_Key")                                           \
  X(hellos_sent, "hello packets sent to detect whether the peer is urnic")         \
  X(hellos_received, "hello packets received")                                     \
  X(hellos_refused, "hello packets dropped: not from a peer, or not understood")   \
  X(cm_received, "connection management messages received")                        \
  X(cm_sent, "connection management messages sent")                                \
  X(cm_resent_on_timeout, "connection management messages resent after a timeout") \
  X(cm_resent_on_request,                                                          \
    "connection management messages resent because the peer repeated its own")     \
  X(cm_dropped, "connection management messages dropped")                          \
  X(cm_stale, "requests and replies refused as stale")

// Gauges: present values.
#define URNIC_VERBS_GAUGES(X) X(regions, "memory regions")
#define URNIC_IWARP_HOST_GAUGES(X) X(reassembly_bytes, "bytes held for reassembly")
#define URNIC_ROCE_HOST_GAUGES(X)                            \
  X(numbers_in_time_wait, "queue pair numbers in time-wait") \
  X(held_bytes, "bytes of packets stored after gaps")

struct PortStats {
  std::string spec;  // "memif:socket=..."
  std::string mac;
  bool link_up = false;
  std::string link_reason;  // why the link is down, if known
  URNIC_PORT_COUNTERS(URNIC_COUNTER_MEMBER)
};

struct NetStats {
  std::string addresses;  // "10.77.0.1/24 fe80::.../64"
  URNIC_NET_COUNTERS(URNIC_COUNTER_MEMBER)
};

struct VerbsObjects {
  URNIC_VERBS_GAUGES(URNIC_COUNTER_MEMBER)
};

struct IwarpHostStats {
  URNIC_IWARP_HOST_COUNTERS(URNIC_COUNTER_MEMBER)
  URNIC_IWARP_HOST_GAUGES(URNIC_COUNTER_MEMBER)
};

struct RoceHostStats {
  URNIC_ROCE_HOST_COUNTERS(URNIC_COUNTER_MEMBER)
  URNIC_ROCE_HOST_GAUGES(URNIC_COUNTER_MEMBER)
};

struct EngineStats {
  std::string name;
  std::uint64_t pid = 0, uptime_ms = 0;
  URNIC_ENGINE_COUNTERS(URNIC_COUNTER_MEMBER)
  PortStats port;
  NetStats net;
  VerbsObjects verbs;
  IwarpHostStats iwarp;
  RoceHostStats roce;
  // Totals of connections that have ended; `connections` has the live ones.
  ConnectionStats ended;
  std::vector<ConnectionStats> connections;
};

// ---- iterating over the counters -------------------------------------------------------------

// One counter of S: ConnectionStats or EngineStats. Names are unique across all lists.
template <class S>
struct Counter {
  const char* group;  // its place in S: "", "verbs", "iwarp", "iwarp.tcp", "roce"
  const char* name;
  const char* help;  // one line
  std::uint64_t& (*member)(S&);

  std::uint64_t& of(S& s) const { return member(s); }
  std::uint64_t of(const S& s) const { return member(const_cast<S&>(s)); }
};
// Static lists in the order of the declarations above; they exist as long as the library is loaded,
// and any thread may read them.
URNIC_API std::span<const Counter<ConnectionStats>> connection_counters();
URNIC_API std::span<const Counter<EngineStats>> engine_counters();
URNIC_API std::span<const Counter<EngineStats>> engine_gauges();

// Adds every counter of `more`, including those by reason and opcode, to `*sum`. Gauges and texts
// of `*sum` do not change.
URNIC_API void add_counters(ConnectionStats* sum, const ConnectionStats& more);

// Returns one JSON document, UTF-8, with every value under its name here, nested as the structs
// are. `urnic stat --json` prints it, and the stat socket of a process sends it (docs/cli.md).
// Bytes of a text that are not UTF-8 are replaced.
URNIC_API std::string stats_to_json(const EngineStats&);
// Parses such a document. Missing members become 0 or empty, unknown members are ignored, so that
// two versions can talk to each other. Errors: protocol (not JSON, or a member of another type).
URNIC_API Result<EngineStats> stats_from_json(std::string_view text);
// The directory of this user's stat sockets, each named <pid>.sock or <pid>-<n>.sock:
// $XDG_RUNTIME_DIR/urnic, else /tmp/urnic-<uid>. Reads the environment: no other thread may change
// it during the call.
URNIC_API std::string stats_directory();

}  // namespace urnic
