// A router whose next link is narrower than ours: what a node sends and is too large for it is
// dropped, and the node is told by ICMP "fragmentation needed" (RFC 1191). Sits between an engine
// and its port; IPv4 without VLAN tags, which is what the simulator uses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "port/port.h"

namespace urnic::sim {

struct RouterControl {
  std::uint32_t path_mtu = 0;  // IP bytes; 0: everything passes
  std::uint64_t dropped = 0;   // datagrams that were too large
  // Sees every frame that the node sends, before the wire treats it; may be empty.
  std::function<void(const urnic_frame&)> watch;
};

struct RoutedPort {
  port::Port port;
  std::shared_ptr<RouterControl> control;  // may outlive the port
};

// `inner` must be open. The returned port owns it.
RoutedPort wrap_router(port::Port inner);

}  // namespace urnic::sim
