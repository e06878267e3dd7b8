// Determines which peers a port admits (AC-9): only processes of this machine, or others on a
// network.
#pragma once

#include <string>

#include "urnic/config.h"

namespace urnic::cli {

// The addresses at which other machines can reach a program that listens on the configured port:
// "every address of this machine", "192.168.7.1 (TAP)"; empty if the port itself is not reachable.
// If a switch connects a memif to a network, the switch must report that.
std::string reachable_at(const Config& config, const std::string& addresses);

// One line of warning for a program that serves something writable there; empty if no warning is
// needed. `token`: clients must have a token.
std::string exposure_warning(const Config& config, const std::string& addresses, bool token);

}  // namespace urnic::cli
