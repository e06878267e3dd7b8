// Keys, except those of TCP (tcp/host_keys.h), derived from the seed of the device.
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace urnic::engine {

enum class KeyOf : std::uint8_t { Stags = 1, IwarpNumbers, RoceNumbers, CommunicationIds };

SipKey device_key(std::uint64_t seed, KeyOf of);

}  // namespace urnic::engine
