// The halves of a UC queue pair. Nothing is acknowledged, repeated or answered: a lost packet
// silently drops its message, and the next First or Only begins anew.
//
// Functions of (state, input): they send nothing and read no clock. Owned by the engine of their
// queue pair, every call under its ownership; posting may run concurrently.
#pragma once

#include <cstdint>

#include "ib/handed_out.h"
#include "ib/message_counters.h"
#include "ib/packet.h"
#include "ib/requester.h"
#include "ib/responder.h"
#include "verbs/work.h"

namespace urnic::ib {

struct UcResponderCounters {
  std::uint64_t requests = 0;         // packets accepted
  std::uint64_t out_of_sequence = 0;  // packets dropped because one before them was lost
  std::uint64_t refused = 0;          // packets dropped, because of their contents or our state
  std::uint64_t lost_messages = 0;    // messages that began and never ended
  TakenMessages messages;
};

struct UcResponderState {
  const QpAttributes* qp;
  verbs::ReceiveQueue* rq;
  verbs::MemoryTable* memory;
  Psn expected;  // ePSN; used only within a message
  IncomingMessage message;
  bool failed = false;
  UcResponderCounters counters;

  verbs::PdId receive_pd() const { return rq->shared() != nullptr ? rq->shared()->pd() : qp->pd; }
};

class UcResponder {
 public:
  // Made in Rtr with the attributes of the move there, which must outlive it like queue and table.
  UcResponder(const QpAttributes& attributes, verbs::ReceiveQueue* rq, verbs::MemoryTable* memory)
      : s_{&attributes, rq, memory, attributes.rq_psn, {}, false, {}} {}
  UcResponder(const UcResponder&) = delete;
  UcResponder& operator=(const UcResponder&) = delete;

  // `request` has passed check(), in a state that accepts requests. Completions as in
  // Responder::take(). Only the verdict Operational ends the queue pair.
  Received take(const ParsedPacket& request, verbs::Completion* completion);

  // A local fault: the receive cannot be written. It has completed with an error, and the queue
  // pair goes to Error.
  bool failed() const { return s_.failed; }
  const UcResponderCounters& counters() const { return s_.counters; }
  // For tests and statistics.
  const UcResponderState& state() const { return s_; }

 private:
  UcResponderState s_;
};

class UcRequester : public HandedOut {
 public:
  // Made in Rts with the attributes of the move there, which must outlive it like queue and table.
  // The queue must have been made with sizeof(SendPart) bytes for the transport.
  UcRequester(const QpAttributes& attributes, verbs::SendQueue* sq, verbs::MemoryTable* memory)
      : HandedOut(attributes, sq, memory) {}

  // Returns the next packet, which counts as sent; false if there is none. Executes local
  // operations when it is their turn. With `may_begin` false no new WQE is begun (SQD), but one
  // that has begun is sent to its end. May fail. A message is done with its last packet, so
  // completions must be reported only after the payload has been copied.
  bool next_packet(bool may_begin, RequestPacket* out);

 private:
  bool find_message();
  bool execute_local_in_turn();
};

}  // namespace urnic::ib
