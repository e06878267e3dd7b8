// What moves a send queue on, back or to its end: acknowledgment, repetition, failure.
#pragma once

#include "ib/send_state.h"

namespace urnic::ib {

// The WQE that PSN `at` belongs to; it is outstanding (una .. max).
std::uint32_t wqe_at(const SendState&, Psn at);
// The oldest PSN not yet answered of the oldest READ or atomic outstanding; there is one.
Psn awaited_psn(const SendState&);

// ---- on
// Everything before `end` is acknowledged, una .. fresh, except from the first unanswered READ or
// atomic on. True if something was.
bool acknowledge(SendState&, Psn end);
// The same by message: those up to SSN `msn` that have left wholly (IB-79).
bool acknowledge_messages(SendState&, Msn msn);
// The response that una, which is of a READ or an atomic, awaits is in memory.
void answered(SendState&);
// After one of the above did something: counters, waits and what they hold back begin anew.
void made_progress(SendState&, Instant now);
// Local operations at una, done already, are passed.
void settle(SendState&);
// Of a long message every so manieth packet asks for an ACK.
std::uint32_t ack_every(const SendState&);
// A packet leaves that asks for a response and ends at `end`.
void expect_answer(SendState&, Psn end, Instant now);
// A response was taken, or something was acknowledged: the transport timer goes on or ends (IB-69).
void rearm(SendState&, Instant now);
// A response in the window was taken that moved nothing: the peer lives, and no probe is needed
// yet.
void heard(SendState&, Instant now);

// ---- back
// Everything from una on is sent again, if the retry counter allows it.
void repeat_by_nak(SendState&, Instant now);
void repeat_by_timeout(SendState&, Instant now);
// The same at no cost: the answer to a probe says that what left before it is lost (S-5).
void repeat_by_probe(SendState&, Instant now);
// The same when the time of an RNR NAK of PSN `refused` has passed.
void wait_for_receive(SendState&, Psn refused, std::uint8_t code, Instant now);
void repeat_after_wait(SendState&, Instant now);

// ---- to its end
void fail(SendState&, std::uint32_t wqe, verbs::Status);
// The request cannot leave; it fails as soon as it is the oldest unanswered one.
void mark_stuck(SendState&, std::uint32_t wqe, verbs::Status);
// Call it after una has moved: fails the stuck request if it is the oldest now, and forgets it if
// it was answered after all.
void check_stuck(SendState&);

}  // namespace urnic::ib
