// Questions about the addresses of this machine, asked of its kernel.
#pragma once

#include <vector>

#include "base/ip_address.h"
#include "base/result.h"

namespace urnic::kernel_tcp {

// Of all interfaces that are up, with the networks around them; errors are errno values.
Outcome<std::vector<IpPrefix>, int> host_prefixes();
// Each of those addresses once.
Outcome<std::vector<IpAddress>, int> host_addresses();
// A socket could have it.
bool is_host_address(const IpAddress& address);
// The address with which packets to `to` would leave.
Outcome<IpAddress, int> host_source_for(const IpAddress& to);
// 0 where packets of that address of the machine's have a way to `to`, else an errno value.
int why_no_way(const IpAddress& from, const IpAddress& to);

}  // namespace urnic::kernel_tcp
