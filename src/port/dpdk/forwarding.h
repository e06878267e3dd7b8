// Sharing an interface with a kernel that forwards (docs/ports.md): what arrives for urnic's
// address reaches the kernel too, and a router sends it on, a second time.
#pragma once

#include <string>

namespace urnic::port::dpdk {

// Value of `key` in driver arguments "a=1,b=2"; empty when it is not there.
std::string driver_argument(const std::string& arguments, const std::string& key);

// One line that says so when the kernel forwards what comes in by `interface`; empty when it does
// not, or when nothing is known of it.
std::string forwarding_complaint(const std::string& interface);

}  // namespace urnic::port::dpdk
