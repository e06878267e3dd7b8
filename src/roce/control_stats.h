// Counters of RoCE as the plain values of the public header.
//
// Called under the ownership of the engine.
#pragma once

#include <cstddef>
#include <vector>

#include "roce/control_path.h"
#include "urnic/stats.h"

namespace urnic::roce {

// Fills in everything but `connections`. Counters of destroyed queue pairs are in `ended`.
void fill_totals(const ControlPath&, EngineStats*);
// The same, with the live queue pairs that have a responder.
void fill_stats(const ControlPath&, EngineStats*);
// Appends the queue pair in `place` of the context table, if there is one with a responder.
bool add_connection(const ControlPath&, std::size_t place, std::vector<ConnectionStats>* out);

}  // namespace urnic::roce
