#include "port/own_mtu.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "port/fd.h"
#include "port/udp_headers.h"
#include "port/udp_socket.h"

namespace urnic::port {
namespace {

std::optional<IpAddress> address_of(const sockaddr* a) {
  if (a != nullptr && a->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, a, sizeof v4);
    return IpAddress::from_bytes({reinterpret_cast<const std::uint8_t*>(&v4.sin_addr), 4});
  }
  if (a != nullptr && a->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, a, sizeof v6);
    return IpAddress::from_bytes({reinterpret_cast<const std::uint8_t*>(&v6.sin6_addr), 16});
  }
  return std::nullopt;
}

// Linux takes every address of the network of a loopback interface for its own.
bool is_loopback(const IpAddress& a) {
  return a.is_v4() && a.v4_value() >> 24 == 127;
}

bool has(const ifaddrs& interface, const IpAddress& interface_address, const IpAddress& own) {
  if (is_loopback(own)) return (interface.ifa_flags & IFF_LOOPBACK) != 0;
  const bool link = own.zone() == 0 || own.zone() == if_nametoindex(interface.ifa_name);
  return link && interface_address == own.without_zone();
}

}  // namespace

std::optional<std::uint32_t> own_mtu(const std::optional<IpAddress>& own) {
  const Fd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifaddrs* list = nullptr;
  if (!any || getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> keeper(list, freeifaddrs);
  std::optional<std::uint32_t> least;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    const auto address = address_of(i->ifa_addr);
    if (!address || (i->ifa_flags & IFF_UP) == 0) continue;
    if (own && !has(*i, *address, *own)) continue;
    ifreq r{};
    std::strncpy(r.ifr_name, i->ifa_name, sizeof r.ifr_name - 1);
    if (ioctl(any.get(), SIOCGIFMTU, &r) != 0 || r.ifr_mtu <= 0) continue;
    const auto mtu = static_cast<std::uint32_t>(r.ifr_mtu);
    least = std::min(least.value_or(mtu), mtu);
  }
  return least;
}

std::optional<std::uint32_t> route_mtu(const IpAddress& own, const IpAddress& to) {
  const bool v6 = to.is_v6();
  const Fd fd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  KernelAddress a;
  socklen_t size = write_kernel_address(own, 0, &a);
  if (!fd || ::bind(fd.get(), &a.any, size) != 0) return std::nullopt;
  size = write_kernel_address(to, kRocePort, &a);
  if (::connect(fd.get(), &a.any, size) != 0) return std::nullopt;
  int mtu = 0;
  size = sizeof mtu;
  const int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP, name = v6 ? IPV6_MTU : IP_MTU;
  if (getsockopt(fd.get(), level, name, &mtu, &size) != 0 || mtu <= 0) return std::nullopt;
  return static_cast<std::uint32_t>(mtu);
}

}  // namespace urnic::port
