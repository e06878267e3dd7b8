// The output of `urnic sim` for people: the variants side by side, then the timeline.
#pragma once

#include <string>
#include <vector>

#include "sim/experiment.h"

namespace urnic::cli {

// Uses integers only, so that the text is the same on every machine.
std::string sim_text(const sim::Scenario& scenario, const std::vector<sim::VariantResult>& results);

}  // namespace urnic::cli
