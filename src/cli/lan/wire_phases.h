// The fault plans of `urnic wire`, one after another: "corrupt=0.001@64M; loss=0.01@5s; clean".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fault/plan.h"

namespace urnic::cli {

struct WirePhase {
  std::string text;  // as given by the user
  fault::FaultPlan plan;
  std::uint64_t bytes = 0;  // ends after so many bytes of frames, both directions; 0: no limit
  std::uint64_t milliseconds = 0;  // ends after this time; 0: no limit
  bool until_signal = false;       // ends only with SIGUSR1
  bool unlimited() const { return bytes == 0 && milliseconds == 0 && !until_signal; }
};

// Parses phases separated by ';'. Each is "clean" or a fault plan, then '@' and a size (K, M, G), a
// time (ms, s, min) or "signal". The last phase may have no end. The error is one line.
Outcome<std::vector<WirePhase>, std::string> parse_phases(std::string_view text);

}  // namespace urnic::cli
