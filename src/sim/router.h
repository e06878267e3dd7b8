// A router whose next link has a smaller MTU. It drops datagrams from a node that are too large,
// and reports "fragmentation needed" by ICMP (RFC 1191). It sits between an engine and its port,
// and handles only what the simulator uses: IPv4 without VLAN tags.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "port/port.h"

namespace urnic::sim {

struct RouterControl {
  std::uint32_t path_mtu = 0;  // in bytes of IP; 0: no limit
  std::uint64_t dropped = 0;   // datagrams that were too large
  // Called with every frame that the node sends, before the wire changes it; may be empty.
  std::function<void(const urnic_frame&)> watch;
};

struct RoutedPort {
  port::Port port;
  std::shared_ptr<RouterControl> control;  // may outlive the port
};

// `inner` must be open. The returned port owns it.
RoutedPort wrap_router(port::Port inner);

}  // namespace urnic::sim
