// The halves of a UC queue pair. Nothing is acknowledged, repeated or answered: what is lost drops
// its message without a word, and the next First or Only begins anew.
//
// Functions of (state, input): they send nothing and read no clock. Owned by the engine of their
// queue pair, every call under its ownership; posting goes on beside them.
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
  std::uint64_t out_of_sequence = 0;  // packets dropped, for what was lost before them
  std::uint64_t refused = 0;          // packets dropped, for what they are or found
  std::uint64_t lost_messages = 0;    // that had begun and never came to their end
  TakenMessages messages;
};

struct UcResponderState {
  const QpAttributes* qp;
  verbs::ReceiveQueue* rq;
  verbs::MemoryTable* memory;
  Psn expected;  // ePSN; of use within a message alone
  IncomingMessage message;
  bool failed = false;
  UcResponderCounters counters;

  verbs::PdId receive_pd() const { return rq->shared() != nullptr ? rq->shared()->pd() : qp->pd; }
};

class UcResponder {
 public:
  // In Rtr, with the attributes of the move there, which outlive it like queue and table.
  UcResponder(const QpAttributes& attributes, verbs::ReceiveQueue* rq, verbs::MemoryTable* memory)
      : s_{&attributes, rq, memory, attributes.rq_psn, {}, false, {}} {}
  UcResponder(const UcResponder&) = delete;
  UcResponder& operator=(const UcResponder&) = delete;

  // `request` has passed check(), in a state that takes requests. Completions as
  // Responder::take(). Of the verdicts Operational alone ends the queue pair.
  Received take(const ParsedPacket& request, verbs::Completion* completion);

  // A fault of our own: the receive cannot be written. It has completed so; the queue pair goes to
  // Error.
  bool failed() const { return s_.failed; }
  const UcResponderCounters& counters() const { return s_.counters; }
  // For tests and statistics.
  const UcResponderState& state() const { return s_; }

 private:
  UcResponderState s_;
};

class UcRequester : public HandedOut {
 public:
  // In Rts, with the attributes of the move there, which outlive it like queue and table. The queue
  // was made with sizeof(SendPart) bytes for the transport.
  UcRequester(const QpAttributes& attributes, verbs::SendQueue* sq, verbs::MemoryTable* memory)
      : HandedOut(attributes, sq, memory) {}

  // The next packet, which counts as sent; false when there is none. Carries out local operations
  // whose turn it is. With `may_begin` false no WQE is begun (SQD): one that has is sent to its
  // end. May fail. A message is done with its last packet, so that completions are to be reported
  // when the payload has been copied.
  bool next_packet(bool may_begin, RequestPacket* out);

 private:
  bool find_message();
  bool execute_local_in_turn();
};

}  // namespace urnic::ib
