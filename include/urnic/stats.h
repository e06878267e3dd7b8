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
#define URNIC_VERBS_COUNTERS(X)                                          \
  X(writes_sent, "RDMA Writes")                                          \
  X(sends_sent, "Sends")                                                 \
  X(reads_sent, "RDMA Reads asked for")                                  \
  X(read_responses_sent, "RDMA Reads served")                            \
  X(write_bytes_sent, "bytes written")                                   \
  X(send_bytes_sent, "bytes sent in Sends")                              \
  X(read_response_bytes_sent, "bytes read by the peer")                  \
  X(write_bytes_received, "bytes written by the peer")                   \
  X(send_bytes_received, "bytes received in Sends")                      \
  X(read_response_bytes_received, "bytes read")                          \
  X(sends_received, "Sends received")                                    \
  X(read_requests_received, "Read Requests received")                    \
  X(payload_placed, "ULP bytes placed in memory of the consumer")        \
  X(completion_wqe_writes, "receives updated for their completion")      \
  X(completion_cqe_writes, "completion queue entries written for Sends") \
  X(completion_partial_cqes, "of those: standing for several Sends")

// FAST and SLOW (docs/fast-slow.md).
#define URNIC_FAST_SLOW_COUNTERS(X)                                \
  X(downgrades, "FAST to SLOW")                                    \
  X(upgrades, "SLOW to FAST")                                      \
  X(recovery_attempts, "segments refused in recovery")             \
  X(immediate_dup_acks, "duplicate ACKs for refused segments")     \
  X(bytes_fast, "stream bytes accepted on the FAST path")          \
  X(bytes_slow, "stream bytes accepted on the SLOW path")          \
  X(detours, "gaps behind which FAST with `store` kept bytes")     \
  X(bytes_detour, "stream bytes kept so, on neither of the paths") \
  X(bytes_copied, "bytes copied for receiving, all copies")        \
  X(holes_opened, "TCP holes opened")                              \
  X(holes_closed, "TCP holes closed")                              \
  X(empty_rq_drops, "Sends dropped for want of a receive")         \
  X(receive_waits, "times that a Send waited for a receive")

// DDP and RDMAP (RFC 5041, RFC 5040).
#define URNIC_DDP_COUNTERS(X)           \
  X(terminates_sent, "Terminates sent") \
  X(terminates_received, "Terminates received")

// TCP.
#define URNIC_TCP_COUNTERS(X)                             \
  X(segments_in, "TCP segments received")                 \
  X(segments_out, "TCP segments sent")                    \
  X(retransmits, "segments sent again")                   \
  X(rto_expirations, "retransmission time-outs")          \
  X(dup_acks_in, "duplicate ACKs received (RFC 5681, 2)") \
  X(dup_acks_out, "duplicate ACKs sent")

// RoCE: packets of the InfiniBand transport; requests of this end and of the peer.
#define URNIC_ROCE_COUNTERS(X)                                                   \
  X(requests_sent, "request packets sent, repeated ones included")               \
  X(requests_repeated, "of those: sent before")                                  \
  X(acks_received, "responses that acknowledged something")                      \
  X(responses_duplicate, "responses that said nothing new")                      \
  X(responses_ghost, "responses to nothing that is outstanding")                 \
  X(responses_malformed, "responses discarded for what they carried")            \
  X(response_timeouts, "times that no answer came in time (IB-70)")              \
  X(sequence_naks_received, "Sequence NAKs acted upon (IB-72)")                  \
  X(implied_naks, "gaps seen in responses, and acted upon")                      \
  X(rnr_naks_received, "RNR NAKs acted upon: the peer had no receive")           \
  X(probes_sent, "request packets repeated as probes (S-5)")                     \
  X(probe_losses, "losses that the answer to a probe showed")                    \
  X(requests_repeated_alone, "request packets repeated, nothing else was (S-6)") \
  X(repeats_needless, "of those: the first one had only been late")              \
  X(sacks_received, "SACKs received: what the peer has (S-6)")                   \
  X(sack_lies, "of those: of packets that have never left")                      \
  X(answers_ahead, "answers to Reads behind a lost one, kept (S-2)")             \
  X(answers_asked_again, "parts of answers that were asked for alone (S-2)")     \
  X(requests_taken, "request packets carried out")                               \
  X(requests_duplicate, "request packets that had come before")                  \
  X(requests_out_of_sequence, "request packets behind a lost one")               \
  X(requests_held, "of those: kept until their turn (S-3)")                      \
  X(requests_placed, "of those: in their place at once (S-2)")                   \
  X(requests_parked, "request packets that found no receive and waited (S-9)")   \
  X(gap_recoveries, "gaps behind which requests were kept (S-8)")                \
  X(roce_downgrades, "FAST to SLOW (S-8)")                                       \
  X(store_full_downgrades, "of those: for want of room; else too many gaps")     \
  X(roce_upgrades, "SLOW to FAST (S-8)")                                         \
  X(requests_too_late, "repeated requests that cannot be answered any more")     \
  X(acks_sent, "ACKs sent")                                                      \
  X(sacks_sent, "SACKs sent (S-6)")                                              \
  X(sequence_naks_sent, "Sequence NAKs sent")                                    \
  X(rnr_naks_sent, "RNR NAKs sent: there was no receive")                        \
  X(requests_refused, "requests refused, each of which ended its queue pair")    \
  X(read_packets_sent, "packets of answers to Reads sent")                       \
  X(marks_received, "packets received with a CE mark (S-10)")                    \
  X(cnps_sent, "CNPs sent for those, one for each 50 us at most")                \
  X(cnps_received, "CNPs received")                                              \
  X(cnps_ignored, "of those: nothing was in flight, or it was known already")    \
  X(window_cuts, "times that less was let into flight, for whatever reason")     \
  X(requests_too_long, "UD: requests longer than the path MTU, never sent")      \
  X(requests_dropped, "UC, UD: packets dropped for what they are or found")      \
  X(messages_lost, "UC: messages of which a packet was missing")

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
#define URNIC_XRC_COUNTERS(X)                                           \
  X(no_queue, "for a queue that is not there, or not of their message") \
  X(wrong_domain, "for a queue of another domain")

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

#define URNIC_ENGINE_COUNTERS(X)                                                          \
  X(polls, "polls of the engine")                                                         \
  X(sleeps, "times the engine slept")                                                     \
  X(wakeups, "times its descriptors woke it")                                             \
  X(connections_opened, "connections opened")                                             \
  X(connections_closed, "connections closed")                                             \
  X(connections_failed, "connections failed")                                             \
  X(peers_denied, "requests for connections refused for their address (`allow`, `deny`)") \
  X(peers_over_limit, "requests for connections refused for the limits of their listener")

// Frames of the port.
#define URNIC_PORT_COUNTERS(X)              \
  X(rx_frames, "frames received")           \
  X(rx_bytes, "bytes received")             \
  X(tx_frames, "frames sent")               \
  X(tx_bytes, "bytes sent")                 \
  X(rx_bad_port, "frames the port refused") \
  X(tx_full, "times the port had no room")  \
  X(syscalls, "system calls made for data")

// IP and below.
#define URNIC_NET_COUNTERS(X)              \
  X(rx_bad_ip, "bad IP headers")           \
  X(rx_fragments, "IP fragments, dropped") \
  X(address_conflicts, "other stations seen with an address of ours (RFC 5227)")

// iWARP outside its connections: segments that match no connection, and requests for new ones.
#define URNIC_IWARP_HOST_COUNTERS(X)                                               \
  X(rx_bad_tcp_checksum, "segments with a wrong TCP checksum")                     \
  X(rx_no_connection, "segments of no connection")                                 \
  X(rx_tcp_dropped, "segments TCP did not accept")                                 \
  X(cookies_sent, "connection requests answered without keeping state (RFC 4987)") \
  X(cookies_taken, "connections that came of those")                               \
  X(challenge_acks, "challenge ACKs sent (RFC 5961)")                              \
  X(challenge_acks_withheld, "of those: not sent, for there were too many")        \
  X(rst_sent, "resets sent for segments of no connection")                         \
  X(turned_away, "connections not taken: too many, or no descriptors")

// RoCE outside its queue pairs.
#define URNIC_ROCE_HOST_COUNTERS(X)                                        \
  X(rx_roce, "datagrams received for RoCE")                                \
  X(tx_roce, "packets of RoCE sent")                                       \
  X(tx_unroutable, "packets lost here: nobody answers on their way")       \
  X(rx_roce_malformed, "dropped: lengths that cannot be")                  \
  X(rx_bad_icrc, "dropped: damaged, by the ICRC")                          \
  X(rx_bad_version, "dropped: of another version of the transport")        \
  X(rx_no_queue_pair, "dropped: to a number that nobody has")              \
  X(rx_wrong_state, "dropped: to a queue pair that takes none now")        \
  X(rx_wrong_service, "dropped: of another service")                       \
  X(rx_bad_pkey, "dropped: of another partition")                          \
  X(rx_wrong_address, "dropped: not from the peer of the queue pair")      \
  X(rx_bad_qkey, "dropped: with another Q_Key than that of the UD one")    \
  X(hellos_sent, "packets that ask whether a peer is urnic as well (S-7)") \
  X(hellos_received, "such packets of peers")                              \
  X(hellos_refused, "such packets dropped: no peer's, or not understood")  \
  X(cm_received, "messages of connection management received")             \
  X(cm_sent, "messages of connection management sent")                     \
  X(cm_repeated, "of those: sent again, for no answer came")               \
  X(cm_answered_again, "of those: sent again, for the peer asked again")   \
  X(cm_dropped, "messages of connection management dropped")               \
  X(cm_stale, "requests and replies refused: they name what another connection has")

// Gauges: present values.
#define URNIC_VERBS_GAUGES(X) X(regions, "memory regions")
#define URNIC_IWARP_HOST_GAUGES(X) X(reassembly_bytes, "bytes held for reassembly")
#define URNIC_ROCE_HOST_GAUGES(X)                                           \
  X(resting_numbers, "numbers of queue pairs that have gone, in time-wait") \
  X(held_bytes, "bytes lent to queue pairs for what they keep behind gaps")

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
