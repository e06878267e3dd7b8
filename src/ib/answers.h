// The responses of a responder: READ responses and atomic results in the order of their requests,
// then the NAK or ACK that covers everything before (IB-32..IB-41); and the handling of duplicates,
// which lead to one of these (IB-42..IB-50).
#pragma once

#include "ib/packet.h"
#include "ib/responder_state.h"

namespace urnic::ib {

struct ResponsePacket;

// Makes one NAK due; no other one follows before something is accepted (IB-52).
void refuse(ResponderState&, Verdict why, Psn psn);
// Accepts nothing more; the last response is an ACK of everything accepted so far.
void end_after_ack(ResponderState&, Verdict why);

// A request that was executed before arrives again. It is answered but not executed again; one that
// can no longer be answered is dropped, and never NAKed.
void answer_duplicate(ResponderState&, const ParsedPacket& request);

// Responder::lose_response().
void refuse_response(ResponderState&, ResponsePacket* out);

// Responder::next_response().
bool next_answer(ResponderState&, ResponsePacket* out);

}  // namespace urnic::ib
