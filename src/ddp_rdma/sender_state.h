// The state of a sender. Choosing and cutting (sender_cut.h), writing bytes (sender_fill.h) and
// runs (sender_run.h) work on it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "ddp_rdma/backlog.h"
#include "ddp_rdma/control_queue.h"
#include "ddp_rdma/fpdu_sizes.h"
#include "ddp_rdma/outstanding_reads.h"
#include "ddp_rdma/read_queue.h"
#include "ddp_rdma/retained.h"
#include "ddp_rdma/send_requests.h"
#include "ddp_rdma/shared_state.h"

namespace urnic::ddp {

struct SenderConfig {
  StreamId stream = 0;
  PdId pd = 0;
  std::uint32_t keep_below = 256;  // messages up to this size are copied for retransmission (E-22)
  // Begins a message in the rest of a segment even if it does not fit as a whole: fewer segments,
  // more FPDUs (RFC 5044, 5.1 allows both).
  bool pack_partial = false;
};

// Counts messages begun, their payload, and FPDUs.
struct SenderCounters {
  std::uint64_t writes = 0, sends = 0, reads = 0, read_responses = 0;  // reads: also atomics
  std::uint64_t write_bytes = 0, send_bytes = 0, read_response_bytes = 0;
  std::array<std::uint64_t, kOpcodes> fpdus{};  // by opcode, counted when first passed to TCP
};

// The message that is being cut. Messages are never interleaved.
struct CurrentMessage {
  enum class Kind : std::uint8_t { None, Request, Response };
  Kind kind = Kind::None;
  Opcode op = Opcode::Write;
  std::uint32_t id = 0;      // Request: index of its WQE. Response: MSN of the Read Request
  std::uint32_t offset = 0;  // bytes of it already cut
  std::uint32_t length = 0;  // total, including Immediate Data

  bool tagged() const { return op == Opcode::Write || op == Opcode::ReadResponse; }
};

// The reason why nothing new is cut, if a request or response could not be sent.
struct SendFailure {
  Violation violation = Violation::None;
  Status status = Status::Success;  // status of request `seq`, until it is reported
  bool torn = false;                // the peer may have a part of an FPDU whose rest cannot be sent
  std::uint32_t seq = 0;
};

// MSNs of what we send in queues 0 and 3. OutstandingReads numbers the requests of queue 1.
struct NextMsn {
  std::uint32_t send, atomic_response;
};

// The copied payload that is still to be sent after Sender::leave, and its key.
struct LeftPayload {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::uint32_t key = 0;
};

struct SenderState {
  SenderState(const SenderConfig& config, SharedState* state, SendQueue* queue,
              ReadQueue* inbound_reads, std::uint32_t first_msn)
      : shared(state),
        inbound(inbound_reads),
        requests(queue, state->memory, config.pd),
        retained(&state->pool),
        next_msn{first_msn, first_msn},
        stream(config.stream),
        keep_below(config.keep_below),
        reads(first_msn),
        sizes(config.pack_partial),
        backlog(queue, inbound_reads, &sizes, first_msn) {}

  SharedState* shared;
  ReadQueue* inbound;  // Reads of the peer that we must answer
  SendRequests requests;
  Retained retained;
  CurrentMessage current;
  bool crc = true;
  bool started = false;          // full operation
  bool stopped = false;          // no new message begins
  bool ended = false;            // no message continues either
  bool prefer_response = false;  // alternates between the send queue and responses
  NextMsn next_msn;
  StreamId stream;
  std::uint32_t keep_below;
  OutstandingReads reads;
  FpduSizes sizes;
  Backlog backlog;
  ControlQueue control;
  SendFailure failure;
  SenderCounters counters;
  LeftPayload left;

  void fail(Violation v) {
    failure.violation = v;
    ended = true;
  }
  void fail_request(std::uint32_t seq, Status status) {
    fail(Violation::LocalCatastrophic);
    failure.seq = seq;
    failure.status = status;
  }
};

}  // namespace urnic::ddp
