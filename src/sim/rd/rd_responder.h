// The responder half of an EE context. It takes requests for all queue pairs of its domain in the
// order of their PSNs, with the checks of RC, and answers them. A refusal ends the message but not
// the EE context; a RESYNC sets the PSN to continue with.
//
//   take()            a request has arrived: executed, answered again, refused, or ignored
//   due()             a response is due now
//   next_response()   returns responses until it returns false
//
// A function of (state, input): it sends nothing and reads no clock. It has the same owner as the
// EE context and its queue pairs; every call must be made under that ownership.
#pragma once

#include <cstdint>

#include "ib/judge_request.h"
#include "ib/packet.h"
#include "ib/responder.h"
#include "ib/responder_state.h"
#include "sim/rd/ee_context.h"
#include "sim/rd/rd_queue_pair.h"

namespace urnic::sim {

// How a request was handled.
enum class RdVerdict : std::uint8_t {
  Accept,
  Duplicate,      // answered again
  OutOfSequence,  // an earlier packet was lost: one NAK
  NotReady,       // RNR NAK
  Refused,        // any other NAK; the same again for the same PSN, until a RESYNC
  Resync,         // the sender gave the message up; or a repetition of that
  Ignored,        // from other queue pairs than its message, or cannot be answered any more
};

struct RdReceived {
  RdVerdict verdict = RdVerdict::Accept;
  bool completed = false;  // a receive of `whose`; in error unless the verdict is Accept
  // The receive was invalid or too small: `whose` must enter Error.
  bool fails = false;
  RdQueuePair* whose = nullptr;
};

struct RdResponderCounters {
  std::uint64_t requests = 0;  // packets accepted
  std::uint64_t duplicates = 0, ignored = 0, out_of_sequence = 0;
  std::uint64_t refused = 0;  // packets; of these with NAK Invalid RD Request
  std::uint64_t invalid_rd = 0;
  std::uint64_t resyncs = 0;  // new ones
  std::uint64_t aborted = 0;  // partly received messages
  std::uint64_t acks = 0, sequence_naks = 0, rnr_naks = 0, fatal_naks = 0, read_responses = 0;
};

class RdResponder {
 public:
  // The EE context is in Rtr with the attributes set by then. `ee` and `memory` must outlive this
  // object.
  RdResponder(const EeAttributes& ee, verbs::MemoryTable* memory);
  RdResponder(const RdResponder&) = delete;
  RdResponder& operator=(const RdResponder&) = delete;

  // `request` is addressed to this EE context and is not a response. `to`: the queue pair in its
  // BTH, or null. If a receive completes, it has left its queue and *completion describes it.
  RdReceived take(const ib::ParsedPacket& request, RdQueuePair* to, verbs::Completion* completion);

  bool due() const {
    return s_.resources.any_due() || resync_due_ || s_.nak.owed() || refusal_due_ || s_.ack_due;
  }
  // The next packet, which counts as sent. False if there is none.
  bool next_response(ib::ResponsePacket* out);

  // `qp` enters Error or Reset: nothing more is done for it.
  void forget(const RdQueuePair* qp);
  // The EE context enters Error or Reset: a partly used receive is reused for the next message.
  void stop() { close_message(); }

  const RdResponderCounters& counters() const { return counters_; }
  ib::Psn expected() const { return s_.expected; }
  // A message has begun and is not complete.
  bool in_message() const { return s_.message.open(); }

 private:
  // The queue pairs of the open message, or of the newest request.
  struct Pair {
    bool any = false;
    std::uint32_t source = 0, dest = 0;
  };
  // The NAK for any request at this PSN, until a RESYNC.
  struct Refusal {
    bool set = false;
    ib::Psn psn;
    ib::NakCode code = ib::NakCode::InvalidRequest;
  };

  bool of_pair(const ib::PacketHeader& h) const {
    return pair_.any && pair_.source == h.deth.source_qp && pair_.dest == h.bth.dest_qp;
  }
  RdReceived resync(const ib::PacketHeader& h, verbs::Completion* c);
  RdReceived duplicate(const ib::ParsedPacket& request);
  RdReceived behind_gap(const ib::PacketHeader& h);
  RdReceived expected_request(const ib::ParsedPacket& request, RdQueuePair* to,
                              verbs::Completion* c);
  RdReceived accept(const ib::ParsedPacket& request, std::uint8_t* target, verbs::Completion* c);
  bool accept_data(const ib::PacketHeader& h, std::uint8_t* target);
  bool place_part(const ib::ParsedPacket& request, std::uint8_t* target);
  RdReceived refuse_as(const ib::PacketHeader&, const ib::RequestJudgment&, verbs::Completion*);
  RdReceived refuse(const ib::PacketHeader& h, ib::NakCode code);
  void serve(RdQueuePair* to, const ib::PacketHeader& h);
  bool receive_in_use(const ib::OpcodeRow& row) const;
  RdReceived not_ready(const ib::PacketHeader& h, std::uint8_t timer);
  void close_message();
  bool read_again(const ib::PacketHeader& h);

  void begin(ib::Operation o, ib::Psn psn, std::uint32_t to, ib::ResponsePacket* out) const;
  bool read_response(ib::Resource* r, ib::ResponsePacket* out);
  void nak(ib::ResponsePacket* out);

  const EeAttributes* ee_;
  ib::QpAttributes now_;  // of the current queue pair, with the path MTU of the EE context
  RdQueuePair* to_ = nullptr;
  ib::ResponderState s_;  // the state that the checks of RC use
  Pair pair_;
  Refusal refusal_;
  bool refusal_due_ = false, resync_due_ = false;
  ib::Psn resync_psn_;
  // Queue pairs of the peer for RESYNC and NAK responses. Other responses go to pair_.
  std::uint32_t resync_from_ = 0, nak_to_ = 0;
  RdResponderCounters counters_;
};

}  // namespace urnic::sim
