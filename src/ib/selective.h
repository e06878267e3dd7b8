// Selective repeat (S-6): the peer's SACK says what it has, the log of what has left says by time
// what is lost, and that alone leaves again. Nothing completes by it: una moves by what is
// acknowledged in the transport's own way. Where the log does not cover una, a SACK is a Sequence
// NAK and everything from una on leaves again.
#pragma once

#include "ib/sack.h"
#include "ib/send_state.h"

namespace urnic::ib {

// Whether lost packets leave again one by one.
inline bool repeats_alone(const SendState& s) {
  return s.log.covers(s.una.psn);
}

// What it acknowledges has been acknowledged; it lies in the window, or ends at una. True: all from
// una on must leave again, as behind a Sequence NAK.
bool take_sack(SendState&, const Sack&, Instant now);
// What is lost by now is to be repeated: something was acknowledged, or SentLog::due() has passed.
void judge_losses(SendState&, Instant now);
// The first lost packet; SentLog::any_lost().
SendPosition lost_position(const SendState&);

}  // namespace urnic::ib
