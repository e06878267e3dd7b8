// The effect of a response on the requester half: it is judged first, without a change, and then
// carried out. A response with PSN p acknowledges everything before p (an ACK also p itself), but
// nothing from the first READ or atomic on that has had no response of its own: p is an implied NAK
// for that one (section 2.5 of the transport).
#pragma once

#include "ib/packet.h"
#include "ib/send_state.h"

namespace urnic::ib {

// Kinds of responses, in the order of the checks.
enum class Response : std::uint8_t {
  Malformed,     // not a response, or an invalid one: discarded
  Ghost,         // beyond the packets sent, or 2^23 or more before them: discarded
  Duplicate,     // for acknowledged requests: only its credits and MSN count
  Bad,           // does not match the request at its PSN: the request fails
  ImpliedNak,    // an earlier READ or atomic has had no response, or part of this one is missing
  ReadData,      // the next part of the oldest READ
  AtomicResult,  // of the oldest atomic
  Ahead,         // READ data or atomic result past a hole: kept until its turn (answer_holes.h)
  Ack,
  Sack,  // an ACK plus the packets received past a gap (sack.h)
  SequenceNak,
  RnrNak,
  InProgress,  // NAK code 5: the request takes longer
  Refused,     // a fatal NAK: the request fails
};

struct Judgment {
  Response what = Response::Malformed;
  std::uint32_t wqe = 0;                          // Bad, Refused: the WQE that fails, and
  verbs::Status status = verbs::Status::Success;  // its status
  Psn end;  // everything before it is acknowledged; valid inside the window
};

// Changes nothing.
Judgment judge_response(const SendState&, const ParsedPacket&);

// The result, for the caller's counters.
struct Taken {
  Response what;
};
// Judges and carries out. READ and atomic data is in memory when it returns.
Taken take_response(SendState&, const ParsedPacket&, Instant now);

}  // namespace urnic::ib
