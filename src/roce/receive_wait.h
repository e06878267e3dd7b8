// Carries out, in order, what a responder has kept: packets past a gap that has closed (S-4), and
// requests that wait for a receive (S-9), with their timeout.
//
// Called under the ownership of the queue pair's engine.
#pragma once

#include "base/time.h"
#include "ib/responder.h"
#include "roce/context.h"
#include "verbs/completions.h"

namespace urnic::roce {

// Posts `*done`, the completion of what was just received, then carries out held packets whose turn
// has come.
void complete_in_order(verbs::Completions*, Context&, ib::Received, verbs::Completion* done);

// RC only. Starts the wait of a request that has no receive, or ends it if a receive has been
// posted. QueuePair::starved makes a post report itself.
void look_for_receive(verbs::Completions*, Context&, Instant now);

// The timeout has passed: the peer is sent an RNR NAK.
void stop_waiting(Context&);

}  // namespace urnic::roce
