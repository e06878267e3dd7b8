// The other end as a person names it: an address or a name of a host, and a port.
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
  std::string host;             // as it was written
  std::optional<IpAddress> ip;  // unless it is a name
  std::uint16_t port = 0;

  // "10.77.0.1:18700", "[fd77::1]:18700", "host:18700"
  std::string to_string() const;
  bool operator==(const Endpoint&) const = default;
};

// "10.77.0.1", "fd77::1", "[fd77::1]:7", "[fe80::1%eth0]:7", "host", "host:7". Addresses are tried
// first; what is neither is nullopt.
std::optional<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);

// Where to connect, in order: "10.77.0.1:18700". A name is looked up, which takes 10 s at most. The
// error is one line.
Outcome<std::vector<std::string>, std::string> places_of(const Endpoint& endpoint);

// Those that the device has a way to; all when it has to none, so that connecting says why.
std::vector<std::string> reachable(Device& device, std::vector<std::string> places);

}  // namespace urnic::cli
