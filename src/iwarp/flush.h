// How the work of a queue pair ends that cannot go on: everything outstanding completes as flushed.
#pragma once

#include "verbs/completions.h"

namespace urnic::iwarp {

using verbs::CmEvent;
using verbs::Completions;
using verbs::Hooks;
using verbs::Note;

// `first`: the status of the request that has failed, if one has.
void flush(Completions&, verbs::QueuePair&, verbs::Status first);
// Its state is Error from now on. Requests that were posted meanwhile, or come later, are flushed
// as well.
void enter_error(Completions&, verbs::QueuePair&, verbs::Status first);
// Work posted in a state that does nothing else with it.
void flush_posted(Completions&, verbs::QueuePair&);

}  // namespace urnic::iwarp
