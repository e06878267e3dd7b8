// Whom a port lets in (AC-9): only processes of this machine, or whoever is on a network.
#pragma once

#include <string>

#include "urnic/config.h"

namespace urnic::cli {

// Where a program that listens on the configured port can be reached from beyond this machine:
// "every address of this machine", "192.168.7.1 (TAP)"; empty: nowhere, as far as the port itself
// says. What a switch joins a memif to is the switch's to say.
std::string reachable_at(const Config& config, const std::string& addresses);

// One line for whoever serves something writable there; empty when nothing needs to be said.
// `token`: who connects must have one.
std::string exposure_warning(const Config& config, const std::string& addresses, bool token);

}  // namespace urnic::cli
