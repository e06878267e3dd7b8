// Requests past a gap (S-3, S-4): one NAK reports that something is missing; a FAST queue pair
// keeps the requests until it has arrived, within the limits of S-8. Until then they count neither
// in ePSN nor in MSN, and are not acknowledged.
#pragma once

#include "ib/packet.h"
#include "ib/responder_state.h"

namespace urnic::ib {

// Handles a request past the expected PSN.
void take_behind_gap(ResponderState&, const ParsedPacket& request);

// To be called after a request was accepted or refused while `watch` was set.
void look_at_recovery(ResponderState&, Verdict);

// True if the first kept request has its turn: it is the expected one and does not wait, or it has
// become a duplicate.
inline bool held_has_turn(const ResponderState& s) {
  return !s.parked && !s.held.empty() &&
         region(s.held.first_psn(), s.expected) != PsnRegion::Invalid;
}

}  // namespace urnic::ib
