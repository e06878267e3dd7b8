// Receiving ends of XRC. They have no completion queues of their own: they complete on those of the
// shared receive queues in their XRC domain, any of which a peer may name.
//
// Called under the ownership of the engine.
#pragma once

#include "roce/context.h"
#include "roce/context_table.h"

namespace urnic::roce {

// Takes the number of the queue away and frees every receive that a receiving end had bound from
// it: a message that is not complete then fails with its next packet.
void close_xrc(ib::XrcQueues*, const ContextTable&, verbs::SharedReceiveQueue*);

// The queue pair is reset: removes its completions from all queues of its domain. Does nothing for
// other services.
void forget_received(const Context&);

// True if a completion queue on which the queue pair completes, or may complete, has overrun
// (E-47).
bool completes_on_overrun(const verbs::QueuePair&);

}  // namespace urnic::roce
