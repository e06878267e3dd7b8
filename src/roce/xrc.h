// The receiving ends of XRC of a side: they have no completion queues of their own but those of the
// shared receive queues of their domain, any of which a peer may name.
//
// Under the ownership of the engine.
#pragma once

#include "roce/context.h"
#include "roce/context_table.h"

namespace urnic::roce {

// The queue has no number any more, and what receiving ends had bound of it is free: a message that
// is not complete fails with its next packet.
void close_xrc(ib::XrcQueues*, const ContextTable&, verbs::SharedReceiveQueue*);

// It is reset: its completions vanish, wherever they are. Nothing of other services.
void forget_received(const Context&);

// A completion queue on which the queue pair completes, or may, has overrun (E-47).
bool completes_on_overrun(const verbs::QueuePair&);

}  // namespace urnic::roce
