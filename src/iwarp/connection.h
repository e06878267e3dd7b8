// One connection: everything between the wire and the queue pair, ordered by how often the receive
// path touches it. Owned by the engine; QPs refer to it by handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/gate.h"
#include "base/ip_address.h"
#include "base/time.h"
#include "ddp_rdma/stream.h"
#include "fastpath/connection_context.h"
#include "fastpath/hole_counters.h"
#include "fastpath/in_logic.h"
#include "iwarp/kernel_tcp.h"
#include "iwarp/listener.h"
#include "iwarp/startup.h"
#include "mpa/framing.h"
#include "net/header_template.h"
#include "reassembly/buffer.h"
#include "reassembly/extract.h"
#include "tcp/flow.h"
#include "tcp/tcb_state.h"
#include "urnic/stats.h"
#include "verbs/queue_pair.h"

namespace urnic::iwarp {

// The index in the table in the low bits, and the number of uses of that index: an id is reused
// after 2^32 connections at one index. 0 means no connection.
using ConnectionId = std::uint64_t;
constexpr unsigned kPlaceBits = 24;

using tcp::FlowKey;

// Counters per connection that no folder below counts (D10).
struct ConnectionCounters {
  std::uint64_t downgrades = 0, upgrades = 0, recovery_attempts = 0, immediate_dup_acks = 0;
  std::array<std::uint64_t, kReasonCount> reasons{};
  std::uint64_t bytes_fast = 0, bytes_slow = 0, bytes_copied = 0, payload_placed = 0;
  std::uint64_t detours = 0, bytes_detour = 0;  // E-41
  std::uint64_t empty_rq_drops = 0, receive_waits = 0;
  std::uint64_t terminates_sent = 0, terminates_received = 0;
  std::uint64_t segments_in = 0, segments_out = 0, dup_acks_out = 0, dup_acks_in = 0;
  std::uint64_t retransmits = 0, rto_expirations = 0;
  std::uint64_t write_bytes_in = 0, send_bytes_in = 0, read_response_bytes_in = 0;
  std::uint64_t sends_in = 0, read_requests_in = 0;
  std::array<std::uint64_t, kOpcodeCount> fpdus_in{};
};

// The stage of a connection for the engine. TCP and the QP have their own states.
enum class Stage : std::uint8_t {
  Opening,     // TCP handshake
  Startup,     // MPA Request/Reply
  Full,        // full operation
  Closing,     // orderly: our FIN follows the last byte
  Leaving,     // the same, and its queue pair has been destroyed; what arrives is discarded
  Terminated,  // a Terminate was sent or received; what still arrives is discarded
  Lingering,   // no QP any more: TCP finishes alone
};

// The treatment of a Send that TCP has acknowledged but that has no posted receive.
// RxCommit::take_fpdu() finds it and moves to Waiting or Discards.
enum class ReceiveWait : std::uint8_t {
  // No Send waits. The next one without a receive waits in Stage::Full (if the queue pair allows
  // waiting) and is discarded in Stage::Closing.
  None,
  // The first FPDU that is not consumed is a Send without a receive; everything after it waits as
  // well. Only in Stage::Full, with `stage_deadline` as its limit. A posted receive, disconnect()
  // and the end of the stream move back to None.
  Waiting,
  // The limit has passed: a Send without a receive ends the stream.
  Over,
  // Stage::Closing: the program has given up what it did not take, so Sends without a receive are
  // skipped, and so are those after them, whose MSNs have a gap.
  Discards,
};

// Tells if FPDUs may be sent. move_gate() alone changes it, for Opening (full_operation,
// open_send_side) and for Ending::raise_terminate: our Terminate goes out in any case.
enum class SendGate : std::uint8_t {
  // No FPDU may be sent before full operation, and by the responder not before it has received an
  // FPDU (RFC 5044, 7.1.3). After the peer's Terminate it stays closed.
  Closed,
  // The initiator waits for the first FPDU, until `send_gate_opens` (Options::first_fpdu_delay).
  Delayed,
  Open,
};

// A failure that was not reported to the program, because there was no memory for it. Only
// Ending::fail_connection() changes it, and Ending::finish_ends() calls that again.
enum class UnreportedEnd : std::uint8_t {
  None,
  BeforeEstablished,  // to be reported as ConnectFailed
  Established,        // to be reported as Failed
};

// The peer's FIN, over either TCP. It moves forward only.
enum class PeerFin : std::uint8_t {
  // It has not come, or lies after data that is missing.
  None,
  // It has come after SLOW bytes that are not parsed yet, or that wait for a receive (own TCP:
  // RxCommit::commit_any, the kernel's: KernelRounds::end_of_bytes).
  AfterData,
  // No data before it is missing or unprocessed (RxCommit::report_fin, Ending::take_fin). In
  // Stage::Full the connection may stay open until `stage_deadline` (ConnectParams::close_wait_ms).
  Reached,
};

// Data for connection attempts that have a given source, or are repeated after a refusal.
struct Redial {
  LocalEnd source;
  std::optional<bool> keepalive;
  Instant until;
  Instant at = Instant::never();  // time of the next attempt
};

struct Connection {
  Connection(reassembly::Pool* pool, std::uint32_t buffer_capacity)
      : buffer(pool, buffer_capacity) {}

  // True if the connection has ended (ConnectionTable::end): nothing is received, sent or timed any
  // more. References to it stay valid until sweep(). Any step that ends connections may have ended
  // this one, so code after such a step checks this.
  bool is_over() const { return over_; }
  // Refused, and waiting for the next attempt.
  bool awaits_listener() const { return redial != nullptr && !redial->at.is_never(); }
  bool awaits_receive() const { return receive_wait == ReceiveWait::Waiting; }
  bool may_send() const { return send_gate == SendGate::Open; }
  // FPDUs are received: there is a stream, and it has not ended.
  bool takes_fpdus() const { return !over_ && (stage == Stage::Full || stage == Stage::Closing); }

  // ---- receive path
  tcp::Tcb tcb;
  fastpath::ConnectionContext context;
  mpa::Framing framing;  // for received data; the grid begins at StartNum 248
  fastpath::HoleCounters hole_counters;
  verbs::QueuePair* qp = nullptr;
  ddp::Stream* stream = nullptr;  // the QP's, `own_stream` while there is none, or that of `left`
  std::uint32_t starved_msn = 0;  // MSN of the last Send dropped for lack of a receive (E-17)
  Stage stage = Stage::Opening;
  bool touched = false;    // got segments in this burst
  bool ack_waits = false;  // for data sent soon (E-7)
  bool in_tx_queue = false;
  bool in_drain_queue = false;  // SLOW bytes wait for their turn at OutLogic
  ReceiveWait receive_wait = ReceiveWait::None;
  PeerFin peer_fin = PeerFin::None;
  SendGate send_gate = SendGate::Closed;
  bool residue = false;  // E-1: bytes directly after the start-up frame are still being parsed
  // Passive: `established` is reported when the RTR has arrived. This is not a state of the gate
  // for sends: our Terminate opens the gate, and the program still does not know of the connection.
  bool rtr_pending = false;
  bool fin_queued = false;
  StreamOffset starved_at;  // start of the segment that was dropped for it
  ConnectionCounters counters;

  // ---- send path
  net::HeaderTemplate header;
  bool routed = false;    // header is complete: the next hop is known
  bool loopback = false;  // the peer is an own address
  std::uint16_t ip_id = 0;

  // ---- over the kernel's TCP: replaces `tcb`, `buffer` and everything for frames
  std::unique_ptr<KernelLink> link;

  // ---- the rest
  ConnectionId id = 0;
  FlowKey key;
  IpAddress next_hop;
  Instant confirm_next_hop;             // at most once a second
  Instant tcp_not_before;               // grace for TCP's timers (Timers::stalled)
  Instant timer_at = Instant::never();  // earliest entry of this connection in the timer heap
  Instant send_gate_opens = Instant::never();  // the limit of SendGate::Delayed, else never
  Instant stage_deadline = Instant::never();   // start-up and closing are guarded by time (E-35)
  reassembly::Buffer buffer;
  reassembly::Extractor extractor;
  std::unique_ptr<Redial> redial;
  std::unique_ptr<Startup> startup;
  std::unique_ptr<ddp::Stream> own_stream;  // carries the Reply of a rejected request
  std::unique_ptr<verbs::QueuePair> left;   // destroyed by the consumer, still sending
  BacklogPlace backlog;                     // passive, until the consumer has answered
  Admission admission;                      // passive: its place at the listener's gate
  std::uint8_t dscp = 0;                    // in its IP headers, over our own TCP
  std::uint16_t close_wait_ms = 0;          // how long an orderly FIN of the peer waits
  std::string failure;                      // why it ended, one line for the user
  Errc failure_code = Errc::closed;
  UnreportedEnd unreported_end = UnreportedEnd::None;

 private:
  friend class ConnectionTable;
  bool over_ = false;
};

// Fetches all that a segment may need, the lines at the same time.
[[gnu::always_inline]] inline void prefetch(const Connection& c) {
  const char* const begin = reinterpret_cast<const char*>(&c);
  const char* const end = reinterpret_cast<const char*>(&c.id);
  for (const char* p = begin; p < end; p += 64) __builtin_prefetch(p, 1);
}

// `opens`: only for SendGate::Delayed.
inline void move_gate(Connection& c, SendGate to, Instant opens = Instant::never()) {
  c.send_gate = to;
  c.send_gate_opens = opens;
}

// The fields that a FAST segment uses besides `tcb` lie together in three cache lines, followed by
// the counters. The fields that name, open and end a connection come after those for sending.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(Connection, tcb) == 0);
static_assert(offsetof(Connection, counters) - offsetof(Connection, context) <= 3 * 64);
static_assert(offsetof(Connection, stage) - offsetof(Connection, qp) < 64);
static_assert(offsetof(Connection, header) > offsetof(Connection, counters));
static_assert(offsetof(Connection, id) > offsetof(Connection, routed));
#pragma GCC diagnostic pop

}  // namespace urnic::iwarp
