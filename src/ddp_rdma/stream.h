// One RDMA stream: the DDP/RDMAP state of one QP bound to one TCP connection, this transport's half
// of a queue pair. Receiving has the steps of D2: admit (pure) for every FPDU of a segment, then
// place all, then - after tcp::commit - deliver by counts. Sending is a byte source for TCP output
// (sender.h).
//
// Owned by one engine; every call except posting is made under its ownership.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/time.h"
#include "ddp_rdma/header.h"
#include "ddp_rdma/message_counts.h"
#include "ddp_rdma/read_queue.h"
#include "ddp_rdma/send_notes.h"
#include "ddp_rdma/sender.h"
#include "ddp_rdma/shared_state.h"
#include "ddp_rdma/terminate.h"
#include "ddp_rdma/verbs_words.h"
#include "verbs/queue_pair.h"

namespace urnic::ddp {

// bound: Sends of a connection after holes, with a completion not yet written (M); setting:
// completion_threshold; limit: 16; beyond: one completion covers a run of further ones;
// test: SendCompletion.ThresholdIsPerConnectionAndFreeAgainAfterDelivery_Q26
inline constexpr std::uint32_t kCompletionThreshold = 16;

// How the completion of a Send gets from the RNIC to the polling program (9.4).
enum class CompletionMethod : std::uint8_t {
  PerSend = 1,  // Fig 13: into the WQE, with one CQE each: 2N writes for N Sends
  Shared = 2,   // Fig 14: one CQE for a run of WQEs, or none written: at most N + 1
};

// Counts the writes for the completion of Sends, as 9.4 defines them.
struct CompletionWrites {
  std::uint64_t wqe = 0;      // WQEs 516R updated
  std::uint64_t cqe = 0;      // CQEs placed
  std::uint64_t partial = 0;  // CQEs whose other data lies in the WQEs (indicator 546)
};

struct StreamConfig : verbs::WorkQueueSizes {
  StreamId id = 0;
  PdId pd = 0;
  std::uint32_t keep_below = 256;  // messages up to this size are copied for retransmission (E-22)
  bool pack_partial = false;       // as in SenderConfig
  CompletionMethod completion_method = CompletionMethod::Shared;
  // M: pending Sends whose data stays in the RNIC, method Shared only.
  std::uint32_t completion_threshold = kCompletionThreshold;
  // How long a Send that TCP has acknowledged may wait for a receive; zero: not at all.
  Duration receive_wait;
};

// The rights of a peer on memory that allows them, unless the program restricts the queue pair.
inline constexpr std::uint8_t kAllRemoteAccess =
    verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;

// The contents of the peer's Terminate.
struct TerminateRecord {
  TerminateInfo info;
};

// The layout of a stream's work queues: receives are numbered by the MSNs of their Sends.
verbs::WorkQueueLayout queue_layout(SharedState* shared, std::uint32_t first_msn = 1);

struct Stream : verbs::TransportHalf {
  // `shared` and `queues` must outlive the stream. `first_msn` is 1 on the wire; other values are
  // for tests of the wrap-around (E-14).
  Stream(const StreamConfig&, SharedState* shared, verbs::WorkQueues* queues,
         std::uint32_t first_msn = 1);
  // A stream without a queue pair, on its own queues.
  Stream(const StreamConfig&, SharedState* shared, std::uint32_t first_msn = 1);

 private:
  Stream(const StreamConfig&, SharedState* shared, std::unique_ptr<verbs::WorkQueues> queues,
         std::uint32_t first_msn);
  std::unique_ptr<verbs::WorkQueues> own_queues_;  // declared first, so that its users are
                                                   // destroyed before it

 public:
  StreamConfig config;
  SharedState* shared;
  MemoryTable* memory;
  SendQueue& sq;
  ReceiveQueue& rq;
  HeldSends held;
  CompletionWrites completion_writes;
  ReadQueue inbound_reads;  // Read Queue 214: requests of the peer, circular by MSN (Fig 11)
  Sender sender;

  // In-order delivery position of the untagged queues: MSN of the next message to deliver.
  std::uint32_t next_send_msn() const { return rq.head(); }
  std::uint32_t next_read_msn() const { return inbound_reads.next(); }

  // Access rights of the queue pair: bits of kAllRemoteAccess. The peer may not use a missing
  // right, whatever a region allows. For Reads and atomics this is checked when they are delivered
  //
  std::uint8_t remote_access = kAllRemoteAccess;
  bool allows(verbs::Access what) const { return (remote_access & what) != 0; }

  bool terminate_received : 1 = false;
  bool receive_gone : 1 = false;  // memory of the oldest receive is gone: that receive fails when
                                  // the stream ends
  TerminateRecord terminate;      // valid if terminate_received

  // In-order position inside the Send being received: `send_mo` bytes of message `mo_msn` have
  // arrived in order. Not maintained for messages up to `mo_unchecked`, parts of which arrived out
  // of order.
  std::uint32_t mo_msn;
  std::uint32_t send_mo = 0;
  std::uint32_t mo_unchecked;

  // Sets the negotiated limits after the MPA start-up: Reads that the peer may have outstanding
  // here, and we there.
  void set_limits(std::uint16_t ird, std::uint16_t ord);
  // A downgrade: discards completions recorded for out-of-order Sends.
  void forget_out_of_order();
  // The protection domain in which local keys of receives must lie.
  PdId receive_pd() const { return rq.shared() != nullptr ? rq.shared()->pd() : config.pd; }
  // The consumer has released the queue pair: nothing more is received, and posted sends go out as
  // described at Sender::leave, which also says when that fails.
  bool leave(std::uint64_t most);
  // Resets to the state after construction, for a new connection. Work requests disappear without
  // completion.
  void reset();
};

// The stream of a queue pair of this transport.
inline Stream& stream_of(verbs::QueuePair& qp) {
  return static_cast<Stream&>(*qp.transport);
}
inline const Stream& stream_of(const verbs::QueuePair& qp) {
  return static_cast<const Stream&>(*qp.transport);
}

// ---- admit: checks everything, changes nothing ------------------------------------------------

enum class Admit : std::uint8_t {
  Place,      // allowed
  NoReceive,  // a Send whose MSN has no WQE posted yet (section 10, R-113, R-114)
  Violate,    // see `violation`
};

struct Admission {
  Admit what = Admit::Violate;
  Violation violation = Violation::None;
  bool in_order = false;
  ParsedSegment segment;
  std::uint8_t* direct = nullptr;  // destination if it is one contiguous piece, else nullptr
  std::uint64_t behind = 0;        // Write: bytes of the region after that destination
};

// Checks the FPDUs of one TCP segment (or of the SLOW stream), in order. Does not change the
// stream: it remembers the changes that earlier FPDUs of the same segment would make. After any
// result but Place, the rest of the segment must not be checked.
//
// An in-order segment is checked strictly: MSNs must be exactly the next ones, the offsets of a
// Send and of a Read Response contiguous, Read Responses in the order of the requests. Out of
// order, only checks that cannot raise a false alarm are made; the rest follows at delivery.
class Admitter {
 public:
  // `in_order`: the segment begins at RCV.NXT, so MSNs must be exactly the next ones (R-n, 3.3).
  Admitter(const Stream& stream, bool in_order);
  // Sets `*a`. Only the header fields of its opcode are set.
  void next(ByteView ulpdu, Admission* a);
  Admission next(ByteView ulpdu) {
    Admission a;
    next(ulpdu, &a);
    return a;
  }

 private:
  void admit_write(Admission& a) const;
  void admit_send(Admission& a);
  void admit_read_request(Admission& a);
  void admit_read_response(Admission& a);
  void admit_atomic_response(Admission& a);
  Violation check_response_order(const SegmentHeader& h, std::uint32_t len);

  const Stream* s_;
  bool in_order_;
  bool response_begun_ = false;  // an earlier FPDU of this segment is part of the oldest read
  std::uint32_t send_msn_, read_msn_;
  std::uint32_t send_mo_;  // expected in the next Send segment
  std::uint32_t response_progress_ = 0;
  Sender::ReadCursor reads_;  // oldest read whose response has not ended here
  std::uint32_t atomic_msn_;
};

// ---- place: writes memory and queue entries; may be repeated (idempotent, section 5) ------------

// Copies the payload. For the last segment of a Send, records the completion, in its WQE 516R or
// elsewhere depending on the method (9.4). For a Read Request, fills its Read Queue entry without a
// doorbell (9.3). The last 64 bytes of a payload are stored after the rest (E-13). Returns the
// messages that end here. `a.what` must be Place, and nothing may have been posted, delivered or
// deregistered since.
MessageCounts place(Stream&, const Admission& a);
// The same, adding to `*counts`. Returns a violation if the memory is gone. Then part of the
// payload may have been placed, and a Send or Read that cannot be completed is recorded as the one
// at fault.
[[nodiscard]] Violation place(Stream&, const Admission& a, MessageCounts* counts);

// ---- deliver: in order only -----------------------------------------------------------------

// Completes `counts` messages, in the fixed order Read Responses, Sends, Read-Request doorbell
// . Passes each completion to `on_completion` in the order of visibility: Completion values,
// and StoredSends for those whose data lies in WQEs 516R (9.4). A sink that does not accept
// StoredSends gets the completions themselves, as with polling. Returns a violation that is found
// only now (an STag that cannot be invalidated, a bad read source, counts that do not match); then
// nothing later may be delivered. `*offending` receives the ULPDU header to copy into the
// Terminate, empty if there is none. It is valid until the next call of deliver or
// Sender::failure_header on any stream of the device.
template <class Sink>
Violation deliver(Stream&, const MessageCounts& counts, Sink&& on_completion,
                  ByteView* offending = nullptr);

// ---- end ------------------------------------------------------------------------------------

// Every outstanding WR completes with Flushed, in posting order, except the one at fault. A send
// request that failed locally has its own status. With RemoteAccess, RemoteOperation,
// RemoteInvalidRequest or FatalTransport as `first`, the oldest send request gets it. With
// LocalLength, or with LocalProtection if no send request failed, the oldest receive gets it. May
// be called again for requests posted later.
template <class Sink>
void flush(Stream&, Status first, Sink&& on_completion);

// The `first` for a stream that we end with violation `v`.
Status flush_status(Violation v);

}  // namespace urnic::ddp

#include "ddp_rdma/stream_inl.h"
