// The IP MTU of this machine's interfaces, as the kernel reports it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ip_address.h"

namespace urnic::port {

// Of the interface that has the address `own`; without one, the smallest of all interfaces that are
// up and have an address. Nothing if the kernel reports none.
std::optional<std::uint32_t> own_mtu(const std::optional<IpAddress>& own);

}  // namespace urnic::port
