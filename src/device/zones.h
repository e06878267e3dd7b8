// The zones of link-local addresses (IpAddress::zone()) as a device knows them.
//
// Over the kernel's TCP an address keeps its zone. Frames say none: a device of frames is on one
// link, and the port udp sends by the interface that has the own address (port/own_links.h).
#pragma once

#include <optional>
#include <string_view>

#include "base/ip_address.h"
#include "device/device_impl.h"
#include "port/zone_name.h"

namespace urnic::detail {

inline IpAddress as_device_has(const DeviceImpl& device, const IpAddress& a) {
  return device.engine->over_kernel_tcp() ? a : a.without_zone();
}

// "[fe80::1%eth0]:7"; a zone is the name or the number of an interface.
inline std::optional<SocketAddress> parse_place(const DeviceImpl& device, std::string_view text) {
  auto at = SocketAddress::parse_zoned(port::number_zone(text));
  if (at) at->ip = as_device_has(device, at->ip);
  return at;
}

}  // namespace urnic::detail
