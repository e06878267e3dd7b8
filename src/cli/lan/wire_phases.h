// The fault plans of `urnic wire` one after the other: "corrupt=0.001@64M; loss=0.01@5s; clean".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fault/plan.h"

namespace urnic::cli {

struct WirePhase {
  std::string text;  // as given
  fault::FaultPlan plan;
  std::uint64_t bytes = 0;  // ends after so many bytes of frames, both directions; 0: not by bytes
  std::uint64_t milliseconds = 0;  // ends after so long; 0: not by time
  bool until_signal = false;       // ends with SIGUSR1 alone
  bool unlimited() const { return bytes == 0 && milliseconds == 0 && !until_signal; }
};

// Phases separated by ';'. Each is "clean" or a fault plan, then '@' and a size (K, M, G), a time
// (ms, s, min) or "signal"; the last one may go without. The error is one line.
Outcome<std::vector<WirePhase>, std::string> parse_phases(std::string_view text);

}  // namespace urnic::cli
