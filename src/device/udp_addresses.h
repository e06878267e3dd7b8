// The addresses and routes of a device whose frames go through the kernel's UDP.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "net/wire.h"
#include "urnic/status.h"

namespace urnic::device {

// For "udp" all addresses of this machine that are up now, for "udp:bind=ADDRESS,..." that one,
// each as a prefix of full length ("192.0.2.1/32"). Errors: unavailable.
Result<std::vector<std::string>> addresses_of_udp_port(std::string_view spec);

// The same, with zones for link-local addresses; empty when they cannot be listed.
std::vector<IpAddress> zoned_addresses_of_udp_port(std::string_view spec);
// True without bind=.
bool has_addresses_of_machine(std::string_view udp_spec);
// Asks the kernel for the MTU of its routes.
net::RouteMtu route_mtus_of_udp_port(std::string_view spec);
// The machine's present addresses; empty when there is none, or they cannot be listed.
std::vector<IpPrefix> udp_addresses_now();

}  // namespace urnic::device
