// Random secrets from the system, which peers must not guess (E-49), and a random MAC address
// (E-34).
#pragma once

#include <cstdint>

#include "base/ip_address.h"
#include "urnic/status.h"

namespace urnic::device {

// The seed of all keys of an engine. Without randomness the engine must not run: an error.
Result<std::uint64_t> random_seed();
// Locally administered, unicast.
Result<MacAddress> random_mac();

}  // namespace urnic::device
