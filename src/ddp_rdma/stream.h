// One RDMA stream: the DDP/RDMAP state of one QP bound to one TCP connection, a queue pair's half
// of this transport. Receiving is split as D2 asks: admit (pure) for every FPDU of a segment, then
// place all, then - after tcp::commit - deliver by counts. Sending is a byte source for TCP output
// (sender.h).
//
// Owned by one engine; every call but posting happens under its ownership.
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

// How the completion of a Send gets from the RNIC to the one who polls (9.4).
enum class CompletionMethod : std::uint8_t {
  PerSend = 1,  // Fig 13: into the WQE, and one CQE each: 2N writes for N Sends
  Shared = 2,   // Fig 14: one CQE for a run of WQEs, or none written: at most N + 1
};

// Writes for the completion of Sends, by the letter of 9.4.
struct CompletionWrites {
  std::uint64_t wqe = 0;      // WQEs 516R updated
  std::uint64_t cqe = 0;      // CQEs placed
  std::uint64_t partial = 0;  // of those: with the rest of the data in the WQEs (indicator 546)
};

struct StreamConfig : verbs::WorkQueueSizes {
  StreamId id = 0;
  PdId pd = 0;
  std::uint32_t keep_below = 256;  // messages up to this are kept for retransmission (E-22)
  bool pack_partial = false;       // SenderConfig
  CompletionMethod completion_method = CompletionMethod::Shared;
  // M: pending Sends whose data stays in the RNIC, method Shared only.
  std::uint32_t completion_threshold = kCompletionThreshold;
  // How long a Send that TCP has acknowledged may wait for a receive; zero: not at all.
  Duration receive_wait;
};

// What a peer may do to memory that allows it, unless the program says less of a queue pair.
inline constexpr std::uint8_t kAllRemoteAccess =
    verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;

// What the peer's Terminate said.
struct TerminateRecord {
  TerminateInfo info;
};

// How the work queues of a stream are laid out: its receives are named by the MSNs of their Sends.
verbs::WorkQueueLayout queue_layout(SharedState* shared, std::uint32_t first_msn = 1);

struct Stream : verbs::TransportHalf {
  // `shared` and `queues` must outlive the stream. `first_msn` is 1 on the wire; anything else is
  // for tests of the wrap (E-14).
  Stream(const StreamConfig&, SharedState* shared, verbs::WorkQueues* queues,
         std::uint32_t first_msn = 1);
  // One without a queue pair, on queues of its own.
  Stream(const StreamConfig&, SharedState* shared, std::uint32_t first_msn = 1);

 private:
  Stream(const StreamConfig&, SharedState* shared, std::unique_ptr<verbs::WorkQueues> queues,
         std::uint32_t first_msn);
  std::unique_ptr<verbs::WorkQueues> own_queues_;  // goes after all that works on them

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

  // In-order delivery position of the untagged queues: MSN of the next message to be delivered.
  std::uint32_t next_send_msn() const { return rq.head(); }
  std::uint32_t next_read_msn() const { return inbound_reads.next(); }

  // Of the queue pair: bits of kAllRemoteAccess. What is not there the peer may not do, whatever a
  // region allows; Reads and atomics are held to it when they are delivered (Q-31).
  std::uint8_t remote_access = kAllRemoteAccess;
  bool allows(verbs::Access what) const { return (remote_access & what) != 0; }

  bool terminate_received : 1 = false;
  bool receive_gone : 1 = false;  // the memory of the oldest receive: it fails, at the stream's end
  TerminateRecord terminate;      // valid when terminate_received

  // In-order position inside the Send being received: `send_mo` bytes of message `mo_msn` have
  // come in order. Not kept for messages up to `mo_unchecked`, parts of which came out of order.
  std::uint32_t mo_msn;
  std::uint32_t send_mo = 0;
  std::uint32_t mo_unchecked;

  // Negotiated limits, set when the MPA start-up is done: Reads the peer may have outstanding here,
  // and we there.
  void set_limits(std::uint16_t ird, std::uint16_t ord);
  // A downgrade: completions noted for what came out of order are discarded.
  void forget_out_of_order();
  // Where local keys of receives must lie.
  PdId receive_pd() const { return rq.shared() != nullptr ? rq.shared()->pd() : config.pd; }
  // Its queue pair is gone for the consumer: nothing is received any more, and what was posted to
  // send goes out as Sender::leave says, which also says when not.
  bool leave(std::uint64_t most);
  // As constructed, for a new connection: work requests vanish without completion.
  void reset();
};

// The stream of a queue pair of this transport.
inline Stream& stream_of(verbs::QueuePair& qp) {
  return static_cast<Stream&>(*qp.transport);
}
inline const Stream& stream_of(const verbs::QueuePair& qp) {
  return static_cast<const Stream&>(*qp.transport);
}

// ---- admit: check everything, change nothing --------------------------------------------------

enum class Admit : std::uint8_t {
  Place,      // allowed
  NoReceive,  // a Send whose MSN has no WQE posted yet (section 10, R-113, R-114)
  Violate,    // `violation` says what
};

struct Admission {
  Admit what = Admit::Violate;
  Violation violation = Violation::None;
  bool in_order = false;
  ParsedSegment segment;
  std::uint8_t* direct = nullptr;  // destination when it is one contiguous piece, else nullptr
  std::uint64_t behind = 0;        // Write: bytes of the region behind that destination
};

// Asks for the FPDUs of one TCP segment (or of the SLOW stream), in order. Pure with respect to the
// stream: what earlier FPDUs of the same segment would change is remembered here. After anything
// but Place nothing more of the segment may be asked.
//
// An in-order segment is held to the letter: MSNs exactly the next ones, the offsets of a Send and
// of a Read Response contiguous, Read Responses in the order of the requests. Out of order only
// what cannot raise a false alarm is checked, and the rest when it is delivered.
class Admitter {
 public:
  // `in_order`: the segment begins at RCV.NXT, so MSNs must be exactly the next ones (R-n, 3.3).
  Admitter(const Stream& stream, bool in_order);
  // Into `*a`, whatever was in it. Of the header only the fields of its opcode are set.
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
  std::uint32_t send_mo_;  // expected of the next Send segment
  std::uint32_t response_progress_ = 0;
  Sender::ReadCursor reads_;  // oldest read whose response has not ended here
  std::uint32_t atomic_msn_;
};

// ---- place: write to memory, queue entries; may be repeated (idempotent, section 5) -------------

// Copies the payload; for the last segment of a Send notes the completion, in its WQE 516R or not
// as the method says (9.4); for a Read Request fills its Read Queue entry without a doorbell (9.3).
// The last 64 bytes of a payload are stored after the rest (E-13). Returns the messages that end
// here. `a.what` must be Place, and nothing may have been posted, delivered or deregistered since.
MessageCounts place(Stream&, const Admission& a);
// The same, adding to `*counts`. Not None when the memory has gone: then a part of the payload may
// have been placed, and a Send or Read that cannot be completed for it is known as the one at
// fault.
[[nodiscard]] Violation place(Stream&, const Admission& a, MessageCounts* counts);

// ---- deliver: in order only -----------------------------------------------------------------

// Completes `counts` messages, in the fixed order Read Responses, Sends, Read-Request doorbell
// handing each completion to `on_completion` in the order they are to be seen: Completion
// values, and StoredSends for those whose data lies in WQEs 516R (9.4). A sink that does not take
// StoredSends is given the completions themselves, as a poll would. A violation found
// only now (an STag that cannot be invalidated, a bad read source, counts that do not match) is
// returned; nothing later may be delivered then. `*offending` receives the ULPDU header to copy
// into the Terminate, empty when there is none; it is valid until the next call of deliver or
// Sender::failure_header on any stream of the device.
template <class Sink>
Violation deliver(Stream&, const MessageCounts& counts, Sink&& on_completion,
                  ByteView* offending = nullptr);

// ---- end ------------------------------------------------------------------------------------

// Every outstanding WR completes with Flushed, in posting order, except the one at fault: a send
// request that failed locally has its own status; with RemoteAccess, RemoteOperation,
// RemoteInvalidRequest or FatalTransport as `first` the oldest send request gets it; with
// LocalLength, or LocalProtection when no send request failed, the oldest receive. May be called
// again for what is posted later.
template <class Sink>
void flush(Stream&, Status first, Sink&& on_completion);

// The `first` of a stream that we end for `v`.
Status flush_status(Violation v);

}  // namespace urnic::ddp

#include "ddp_rdma/stream_inl.h"
