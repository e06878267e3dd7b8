// What addresses a device has whose frames go through the kernel's UDP.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "urnic/status.h"

namespace urnic::device {

// Of "udp" or "udp:bind=ADDRESS,...": that one, or all of this machine that are up now, each alone
// ("192.0.2.1/32"). Errors: unavailable.
Result<std::vector<std::string>> addresses_of_udp_port(std::string_view spec);

// The same with the zones of those that are link-local; empty when they cannot be listed.
std::vector<IpAddress> zoned_addresses_of_udp_port(std::string_view spec);
// Without bind=.
bool has_addresses_of_machine(std::string_view udp_spec);
// What those are now; empty when there is none, or they cannot be listed.
std::vector<IpPrefix> udp_addresses_now();

}  // namespace urnic::device
