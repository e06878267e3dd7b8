// Counters of RoCE as the plain values of the public header.
//
// Under the ownership of the engine.
#pragma once

#include <cstddef>
#include <vector>

#include "roce/control_path.h"
#include "urnic/stats.h"

namespace urnic::roce {

// All but `connections`; what queue pairs counted that were destroyed is in `ended`.
void fill_totals(const ControlPath&, EngineStats*);
// With the live queue pairs that take requests.
void fill_stats(const ControlPath&, EngineStats*);
// That of the queue pair in `place` of the context table, if there is one that takes requests.
bool add_connection(const ControlPath&, std::size_t place, std::vector<ConnectionStats>* out);

}  // namespace urnic::roce
