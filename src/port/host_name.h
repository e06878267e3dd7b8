// Resolves host names to addresses with the system's resolver (getaddrinfo: files, DNS, ...).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "base/result.h"

namespace urnic::port {

// True if `text` could be a host name (RFC 1123, 2.1, and '_'): labels of letters, digits and
// dashes. The last label must not be a number, because then the text is a mistyped address.
bool is_host_name(std::string_view text);

// Returns addresses of both IP versions in order of preference (RFC 6724), each once, with their
// zones. Waits at most `timeout_ms`, and only while `give_up` returns false. The resolver itself
// cannot be cancelled and continues in its own thread. The error is one line.
Outcome<std::vector<IpAddress>, std::string> addresses_of_host(
    const std::string& name, int timeout_ms, const std::function<bool()>& give_up);

}  // namespace urnic::port
