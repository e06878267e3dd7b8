// Functions that move a send queue forward, back, or to its end: acknowledgment, repetition,
// failure.
#pragma once

#include "ib/send_state.h"

namespace urnic::ib {

// The WQE that PSN `at` belongs to; it must be outstanding (una .. max).
std::uint32_t wqe_at(const SendState&, Psn at);
// The oldest unanswered PSN of the oldest READ or atomic outstanding; there must be one.
Psn awaited_psn(const SendState&);

// ---- forward
// Acknowledges everything before `end` (una .. fresh), except from the first unanswered READ or
// atomic on. True if anything was acknowledged.
bool acknowledge(SendState&, Psn end);
// The same by message: those up to SSN `msn` that have been sent completely (IB-79).
bool acknowledge_messages(SendState&, Msn msn);
// The response that una, a READ or an atomic, awaits is in memory.
void answered(SendState&);
// To be called after progress by one of the above: resets counters and waits, and releases what
// they hold back.
void made_progress(SendState&, Instant now);
// Skips local operations at una that are done already.
void settle(SendState&);
// In a long message, every how many packets one requests an ACK.
std::uint32_t ack_every(const SendState&);
// A packet that requests a response and ends at `end` is sent.
void expect_answer(SendState&, Psn end, Instant now);
// A response was accepted, or something was acknowledged: restarts or stops the transport timer
// (IB-69).
void rearm(SendState&, Instant now);
// A response in the window was accepted without progress: the peer is alive, and no probe is needed
// yet.
void heard(SendState&, Instant now);

// ---- back
// Repeats everything from una on, if the retry counter allows it.
void repeat_by_nak(SendState&, Instant now);
void repeat_by_timeout(SendState&, Instant now);
// The same without using a retry: the response to a probe shows that packets sent before it are
// lost (S-5).
void repeat_by_probe(SendState&, Instant now);
// The same after the time of an RNR NAK for PSN `refused`.
void wait_for_receive(SendState&, Psn refused, std::uint8_t code, Instant now);
void repeat_after_wait(SendState&, Instant now);

// ---- to its end
void fail(SendState&, std::uint32_t wqe, verbs::Status);
// The request cannot be sent; it fails as soon as it is the oldest unanswered one.
void mark_stuck(SendState&, std::uint32_t wqe, verbs::Status);
// To be called after una has moved: fails the stuck request if it is the oldest now, and clears the
// mark if it was answered after all.
void check_stuck(SendState&);

}  // namespace urnic::ib
