// Detects that an interface is shared with a kernel that forwards packets (docs/ports.md). Packets
// for urnic's address also reach the kernel, and a router would send them a second time.
#pragma once

#include <string>

namespace urnic::port::dpdk {

// The value of `key` in driver arguments "a=1,b=2"; empty if missing.
std::string driver_argument(const std::string& arguments, const std::string& key);

// Returns one line of warning if the kernel forwards packets that arrive at `interface`; empty if
// it does not, or if that cannot be determined.
std::string forwarding_complaint(const std::string& interface);

}  // namespace urnic::port::dpdk
