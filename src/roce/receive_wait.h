// What a responder has kept, in its turn: behind a gap that has closed (S-4), and what waits for a
// receive (S-9), with its time.
//
// Under the ownership of the engine of the queue pair.
#pragma once

#include "base/time.h"
#include "ib/responder.h"
#include "roce/context.h"
#include "verbs/completions.h"

namespace urnic::roce {

// `*done` is of what was taken; then whatever has its turn behind it.
void complete_in_order(verbs::Completions*, Context&, ib::Received, verbs::Completion* done);

// RC. A request may have begun to wait, or there may be a receive for one that does. Who posts one
// is asked to tell (QueuePair::starved).
void look_for_receive(verbs::Completions*, Context&, Instant now);

// Its time is up: the peer is told to come again.
void stop_waiting(Context&);

}  // namespace urnic::roce
