// Asks the kernel for the IP MTU of this machine's interfaces and routes. Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ip_address.h"

namespace urnic::port {

// Returns the IP MTU of the interface that has the address `own`. Without an address: the smallest
// of all interfaces that are up and have an address. Nothing if the kernel reports none.
std::optional<std::uint32_t> own_mtu(const std::optional<IpAddress>& own);

// Returns the IP MTU of the route from an own address, with its zone if it is link-local, to
// another one. Nothing without such a route.
std::optional<std::uint32_t> route_mtu(const IpAddress& own, const IpAddress& to);

}  // namespace urnic::port
