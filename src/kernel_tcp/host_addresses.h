// Queries the kernel about the addresses of this machine.
#pragma once

#include <vector>

#include "base/ip_address.h"
#include "base/result.h"

namespace urnic::kernel_tcp {

// The addresses of all interfaces that are up, with their network prefixes; errors are errno
// values.
Outcome<std::vector<IpPrefix>, int> host_prefixes();
// The same addresses, each once.
Outcome<std::vector<IpAddress>, int> host_addresses();
// True if a socket can be bound to this address.
bool is_host_address(const IpAddress& address);
// The source address of packets to `to`.
Outcome<IpAddress, int> host_source_for(const IpAddress& to);
// 0 if packets from that own address have a route to `to`, else an errno value.
int why_no_way(const IpAddress& from, const IpAddress& to);

}  // namespace urnic::kernel_tcp
