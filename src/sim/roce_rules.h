// Which items (docs/items.txt) a run between queue pairs of RoCE has shown: what happened that the
// item is about, and that it went as the item says.
#pragma once

#include <string>
#include <vector>

#include "sim/experiment.h"
#include "sim/scenario.h"

namespace urnic::sim {

std::vector<std::string> rules_seen(const Setup& setup, const RunResult& run);
// Those it can tell of.
std::vector<std::string> known_rules();

}  // namespace urnic::sim
