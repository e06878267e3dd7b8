// The links of a port's own addresses of IPv6: the kernel sends to a link-local address (fe80::/10)
// only if the interface is said, and the frames of a device do not say it.
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
  // Of `only`, with its zone, or of all addresses of this machine. If two links have the same
  // address, it is the first's.
  explicit OwnLinks(const std::optional<IpAddress>& only);

  // The number of the interface that `d` leaves by; 0: the kernel's routes say it, or the source is
  // nobody's. An address that has come to this machine since is found.
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
