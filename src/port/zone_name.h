// Zones of link-local addresses (fe80::/10) as people write them: by the name of an interface.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ip_address.h"

namespace urnic::port {

// "fe80::1%eth0" with the number of the interface, as IpAddress::parse_zoned() takes it; also with
// brackets and a port. A text without a zone, or whose zone names no interface, is returned as it
// is.
std::string number_zone(std::string_view text);

// An address whose zone, if it has one, is a name or a number.
std::optional<IpAddress> parse_with_zone(std::string_view text);

// A link-local address of version 6 is somewhere only with its interface.
inline bool lacks_zone(const IpAddress& a) {
  return a.is_v6() && a.is_link_local() && a.zone() == 0;
}
inline constexpr const char* kLacksZone =
    ": a link-local address needs its interface, for example fe80::1%eth0";

}  // namespace urnic::port
