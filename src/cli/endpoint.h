// The peer's address as a user writes it: an address or a host name, and a port.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "base/result.h"
#include "urnic/verbs.h"

namespace urnic::cli {

struct Endpoint {
  std::string host;             // as written by the user
  std::optional<IpAddress> ip;  // empty if the host is a name
  std::uint16_t port = 0;

  // "10.77.0.1:18700", "[fd77::1]:18700", "host:18700"
  std::string to_string() const;
  bool operator==(const Endpoint&) const = default;
};

// Parses "10.77.0.1", "fd77::1", "[fd77::1]:7", "[fe80::1%eth0]:7", "host", "host:7". Addresses are
// tried before names; nullopt if the text is neither.
std::optional<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);

// The places to connect to, in order: "10.77.0.1:18700". Looks up a name, which takes at most 10 s.
// The error is one line.
Outcome<std::vector<std::string>, std::string> places_of(const Endpoint& endpoint);

// The places that the device has a route to. Returns all if it has a route to none, so that the
// connection attempt reports the reason.
std::vector<std::string> reachable(Device& device, std::vector<std::string> places);

}  // namespace urnic::cli
