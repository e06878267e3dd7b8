// What a response does to the requester half: judged first, without a change, then carried out. A
// response with PSN p acknowledges what lies before it (an ACK p itself as well), but nothing from
// the first READ or atomic on that has not had its own response: that one is thereby implicitly
// NAKed (section 2.5 of the transport).
#pragma once

#include "ib/packet.h"
#include "ib/send_state.h"

namespace urnic::ib {

// What a response is, in the order it is looked for.
enum class Response : std::uint8_t {
  Malformed,     // no response, or one that cannot be: discarded
  Ghost,         // beyond what was sent, or 2^23 and more behind it: discarded
  Duplicate,     // of what is acknowledged: only its credits and MSN count
  Bad,           // not the answer to what was asked under its PSN: the request fails
  ImpliedNak,    // an earlier READ or atomic has had no response, or a part of this one is missing
  ReadData,      // the next part of the oldest READ
  AtomicResult,  // of the oldest atomic
  Ahead,         // either, behind a hole: kept until its turn (answer_holes.h)
  Ack,
  Sack,  // an ACK, and what lies behind it (sack.h)
  SequenceNak,
  RnrNak,
  InProgress,  // NAK code 5: it takes longer
  Refused,     // NAK that is not repeated: the request fails
};

struct Judgment {
  Response what = Response::Malformed;
  std::uint32_t wqe = 0;                          // Bad, Refused: which fails, and
  verbs::Status status = verbs::Status::Success;  // as what
  Psn end;  // everything before it is acknowledged; only if it is in the window
};

// Pure.
Judgment judge_response(const SendState&, const ParsedPacket&);

// What became of it, for the caller's counters.
struct Taken {
  Response what;
};
// Judges and carries out. READ and atomic data is in memory before it returns.
Taken take_response(SendState&, const ParsedPacket&, Instant now);

}  // namespace urnic::ib
