// Zones of link-local addresses (fe80::/10) as users write them: by the name of an interface.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ip_address.h"

namespace urnic::port {

// Replaces the zone in "fe80::1%eth0" by the number of the interface, as IpAddress::parse_zoned()
// expects it; also with brackets and a port. A text without a zone, or whose zone is not an
// interface name, is returned unchanged.
std::string number_zone(std::string_view text);

// Parses an address whose zone, if any, is a name or a number.
std::optional<IpAddress> parse_with_zone(std::string_view text);

// True for a link-local IPv6 address without a zone, which is ambiguous.
inline bool lacks_zone(const IpAddress& a) {
  return a.is_v6() && a.is_link_local() && a.zone() == 0;
}
inline constexpr const char* kLacksZone =
    ": a link-local address needs its interface, for example fe80::1%eth0";

}  // namespace urnic::port
