// Determines which items (docs/items.txt) a run between RoCE queue pairs has shown: the situation
// of the item occurred, and urnic behaved as the item requires.
#pragma once

#include <string>
#include <vector>

#include "sim/experiment.h"
#include "sim/scenario.h"

namespace urnic::sim {

std::vector<std::string> rules_seen(const Setup& setup, const RunResult& run);
// The items that rules_seen() can detect.
std::vector<std::string> known_rules();

}  // namespace urnic::sim
