// Randomness from the system, for what others must not guess (E-49), and a MAC address of one's own
// (E-34).
#pragma once

#include <cstdint>

#include "base/ip_address.h"
#include "urnic/status.h"

namespace urnic::device {

// All keys of an engine follow from it. Without randomness nothing may run: an error.
Result<std::uint64_t> random_seed();
// Locally administered, of one station.
Result<MacAddress> random_mac();

}  // namespace urnic::device
