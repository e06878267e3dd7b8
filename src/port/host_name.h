// Names of hosts to addresses, by what the machine has for that (getaddrinfo: files, DNS, ...).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "base/result.h"

namespace urnic::port {

// Whether `text` could be a name (RFC 1123, 2.1, and '_'): labels of letters, digits and dashes,
// the last one not a number, which an address that is written wrongly would be.
bool is_host_name(std::string_view text);

// Addresses of both versions in order of preference (RFC 6724), each once, with their zones. At
// most `timeout_ms`, and no longer than `give_up` says false; the question itself cannot be taken
// back and goes on in a thread of its own. The error is one line.
Outcome<std::vector<IpAddress>, std::string> addresses_of_host(
    const std::string& name, int timeout_ms, const std::function<bool()>& give_up);

}  // namespace urnic::port
