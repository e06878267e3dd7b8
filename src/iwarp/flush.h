// Ends the work of a queue pair that cannot continue: all outstanding requests complete as flushed.
#pragma once

#include "verbs/completions.h"

namespace urnic::iwarp {

using verbs::CmEvent;
using verbs::Completions;
using verbs::Hooks;
using verbs::Note;

// `first`: the status of the request that failed, if there is one.
void flush(Completions&, verbs::QueuePair&, verbs::Status first);
// Sets the state to Error. Requests posted in the meantime, or later, are flushed as well.
void enter_error(Completions&, verbs::QueuePair&, verbs::Status first);
// Flushes work that was posted in a state in which it is not executed.
void flush_posted(Completions&, verbs::QueuePair&);

}  // namespace urnic::iwarp
