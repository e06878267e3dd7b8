// Keys of what is not TCP's (tcp/host_keys.h), from the seed of the device.
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace urnic::engine {

enum class KeyOf : std::uint8_t { Stags = 1, IwarpNumbers, RoceNumbers, CommunicationIds };

SipKey device_key(std::uint64_t seed, KeyOf of);

}  // namespace urnic::engine
