// One RDMA stream: the DDP/RDMAP state of one QP bound to one TCP connection. Receiving is split
// as D2 asks: admit (pure) for every FPDU of a segment, then place all, then - after tcp::commit -
// deliver by counts. Sending is a byte source for TCP output (sender.h).
//
// Owned by one engine; no locks. Receive and send queues may be posted to under a lock the caller
// holds (verbs).
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "ddp_rdma/memory.h"
#include "ddp_rdma/receive_queue.h"
#include "ddp_rdma/read_queue.h"
#include "ddp_rdma/sender.h"
#include "ddp_rdma/work.h"

namespace urnic::ddp {

struct StreamConfig {
  StreamId id = 0;
  PdId pd = 0;
  std::uint32_t max_send_wr = 128, max_recv_wr = 128;
  std::uint32_t max_send_sge = 4, max_recv_sge = 4;
  std::uint32_t max_inline = 256;
  std::uint32_t keep_below = 256;  // payloads up to this are kept for retransmission (E-22)
};

struct Stream {
  Stream(const StreamConfig&, MemoryTable*);

  StreamConfig config;
  MemoryTable* memory;
  ReceiveQueue rq;
  ReadQueue inbound_reads;  // Read Queue 214: requests of the peer, circular by MSN (Fig 11)
  Sender sender;

  // In-order delivery position of the untagged queues: MSN of the next message to be delivered.
  std::uint32_t next_send_msn = 1;
  std::uint32_t next_read_msn = 1;
  bool terminate_received = false;
  TerminateRecord terminate;  // valid when terminate_received

  // Negotiated limits, set when the MPA start-up is done.
  void set_limits(std::uint16_t ird, std::uint16_t ord);
};

// ---- admit: check everything, change nothing --------------------------------------------------

enum class Admit : std::uint8_t {
  Place,      // allowed
  NoReceive,  // a Send whose MSN has no WQE posted yet (section 10, R-113, R-114)
  Violate,    // `violation` says what
};

struct Admission {
  Admit what = Admit::Violate;
  Violation violation = Violation::None;
  ParsedSegment segment;
  std::uint8_t* direct = nullptr;  // destination when it is one contiguous piece, else nullptr
};

// Asks for the FPDUs of one TCP segment (or of the SLOW stream), in order. Pure with respect to the
// stream: what earlier FPDUs of the same segment would change is remembered here.
class Admitter {
 public:
  // `in_order`: the segment begins at RCV.NXT, so MSNs must be exactly the next ones (R-n, 3.3).
  Admitter(const Stream& stream, bool in_order);
  Admission next(ByteView ulpdu);

 private:
  const Stream* s_;
  bool in_order_;
  std::uint32_t send_msn_, read_msn_, responses_;
};

// ---- place: write to memory, queue entries; may be repeated (idempotent, section 5) -------------

// Copies the payload; for the last segment of a Send notes the completion in its WQE 516R (method
// 1, 9.4); for a Read Request fills its Read Queue entry without a doorbell (9.3). The last 64
// octets of a payload are stored after the rest (E-13). Returns the messages that end here.
MessageCounts place(Stream&, const Admission&);

// ---- deliver: in order only -----------------------------------------------------------------

// Completes `counts` messages, in the fixed order Read Responses, Sends, Read-Request doorbell
// appending completions to `out` (in the order they are to be seen). A violation found
// only now (an STag that cannot be invalidated, a bad read source, counts that do not match) is
// returned; nothing later may be delivered then. `*offending` receives the ULPDU header to copy
// into the Terminate, when there is one.
template <class Sink>
Violation deliver(Stream&, const MessageCounts& counts, Sink&& on_completion);

// ---- end ------------------------------------------------------------------------------------

// Every outstanding WR completes with `first` (the one at fault, if any, `culprit`) or Flushed.
template <class Sink>
void flush(Stream&, Status first, Sink&& on_completion);

}  // namespace urnic::ddp

#include "ddp_rdma/stream_inl.h"
