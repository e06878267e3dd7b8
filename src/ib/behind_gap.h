// Requests behind a gap (S-3, S-4): one NAK tells what is missing; a FAST queue pair keeps them
// until it has come, as far as S-8 allows. Nothing of them counts before, neither in ePSN nor in
// MSN, and nothing is acknowledged.
#pragma once

#include "ib/packet.h"
#include "ib/responder_state.h"

namespace urnic::ib {

// A request that lies behind the expected PSN.
void take_behind_gap(ResponderState&, const ParsedPacket& request);

// Something was taken or refused while `watch` was set.
void look_at_recovery(ResponderState&, Verdict);

// Whether the first of those kept has its turn: it is the expected one and does not wait, or has
// been passed over.
inline bool held_has_turn(const ResponderState& s) {
  return !s.parked && !s.held.empty() &&
         region(s.held.first_psn(), s.expected) != PsnRegion::Invalid;
}

}  // namespace urnic::ib
