// The zones of link-local addresses (IpAddress::zone()) in a device.
//
// Over the kernel's TCP an address keeps its zone. Frames carry no zone: a device of frames is on
// one link, and the port udp sends through the interface that has the own address
// (port/own_links.h).
#pragma once

#include <optional>
#include <string_view>

#include "base/ip_address.h"
#include "device/device_impl.h"
#include "port/zone_name.h"

namespace urnic::device {

inline IpAddress as_device_has(const DeviceImpl& device, const IpAddress& a) {
  return device.engine->over_kernel_tcp() ? a : a.without_zone();
}

// "[fe80::1%eth0]:7"; a zone is the name or the number of an interface.
inline std::optional<SocketAddress> parse_place(const DeviceImpl& device, std::string_view text) {
  auto at = SocketAddress::parse_zoned(port::number_zone(text));
  if (at) at->ip = as_device_has(device, at->ip);
  return at;
}

// The local address for a connection to `place`, if the zone decides that: over UDP, to a
// link-local address. Otherwise none, and the engine chooses. Errors: unreachable (no own address
// is on that link, or no link is named).
Result<std::optional<IpAddress>> source_by_zone(DeviceImpl& device, std::string_view place);

}  // namespace urnic::device
