// The interfaces of a port's own IPv6 addresses. The kernel sends to a link-local address
// (fe80::/10) only with an interface, and the frames of a device do not specify one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/ip_address.h"
#include "port/udp_headers.h"

namespace urnic::port {

class OwnLinks {
 public:
  OwnLinks() = default;
  // For `only`, with its zone, or for all addresses of this machine. If two interfaces have the
  // same address, the first one is used.
  explicit OwnLinks(const std::optional<IpAddress>& only);

  // The interface number for sending `d`; 0: the kernel's routes decide, or the source address is
  // unknown. Also finds addresses that were added later.
  std::uint32_t of(const UdpDatagram& d) {
    if (!d.source.is_v6() || !d.destination.is_link_local()) return 0;
    return find(d.source);
  }

 private:
  std::uint32_t find(const IpAddress& source);
  void read();

  std::optional<IpAddress> only_;
  std::vector<std::pair<IpAddress, std::uint32_t>> links_;
  std::chrono::steady_clock::time_point last_search_;
};

}  // namespace urnic::port
