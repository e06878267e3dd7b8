// What `urnic sim` prints for people: the variants side by side, then what happened when.
#pragma once

#include <string>
#include <vector>

#include "sim/experiment.h"

namespace urnic::cli {

// Everything in whole numbers, so that it is the same on every machine.
std::string sim_text(const sim::Scenario& scenario, const std::vector<sim::VariantResult>& results);

}  // namespace urnic::cli
