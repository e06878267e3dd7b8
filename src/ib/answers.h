// What a responder sends back: READ responses and atomic results in the order of their requests,
// then the NAK or ACK that covers everything before (IB-32..IB-41), and how a duplicate becomes one
// of these (IB-42..IB-50).
#pragma once

#include "ib/packet.h"
#include "ib/responder_state.h"

namespace urnic::ib {

struct ResponsePacket;

// One NAK is owed, and no other one will be before something is accepted (IB-52).
void refuse(ResponderState&, Verdict why, Psn psn);
// Takes nothing more; the last answer is an ACK of everything taken so far.
void end_after_ack(ResponderState&, Verdict why);

// A request that was carried out before asks again. Nothing is done again; one that cannot be
// answered any more is dropped, and never NAKed.
void answer_duplicate(ResponderState&, const ParsedPacket& request);

// Responder::lose_response().
void refuse_response(ResponderState&, ResponsePacket* out);

// Responder::next_response().
bool next_answer(ResponderState&, ResponsePacket* out);

}  // namespace urnic::ib
