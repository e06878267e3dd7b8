// Selective repeat (S-6): the peer's SACK reports the packets it has, the log of sent packets
// determines by time which are lost, and only those are sent again. Nothing completes by a SACK:
// una only moves by the transport's own acknowledgments. If the log does not cover una, a SACK
// counts as a Sequence NAK and everything from una on is sent again.
#pragma once

#include "ib/sack.h"
#include "ib/send_state.h"

namespace urnic::ib {

// True if lost packets are sent again one by one.
inline bool repeats_alone(const SendState& s) {
  return s.log.covers(s.una.psn);
}

// Handles a SACK whose acknowledgment has been processed; its PSN lies in the window, or ends at
// una. True: everything from una on must be sent again, as after a Sequence NAK.
bool take_sack(SendState&, const Sack&, Instant now);
// Marks lost packets for repetition: to be called when something was acknowledged, or
// SentLog::due() has passed.
void judge_losses(SendState&, Instant now);
// The position of the first lost packet; only if SentLog::any_lost().
SendPosition lost_position(const SendState&);

}  // namespace urnic::ib
