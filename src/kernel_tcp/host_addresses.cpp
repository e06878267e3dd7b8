#include "kernel_tcp/host_addresses.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "kernel_tcp/kernel_address.h"
#include "kernel_tcp/socket.h"

namespace urnic::kernel_tcp {
namespace {

Socket datagram_socket(const IpAddress& like) {
  return Socket(::socket(like.is_v6() ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

// Without a netmask the prefix is the address itself.
std::uint8_t length_of(const sockaddr* netmask, const IpAddress& address) {
  if (netmask == nullptr) return static_cast<std::uint8_t>(address.bits());
  const auto* const bytes = address.is_v6()
                                ? reinterpret_cast<const sockaddr_in6*>(netmask)->sin6_addr.s6_addr
                                : reinterpret_cast<const std::uint8_t*>(
                                      &reinterpret_cast<const sockaddr_in*>(netmask)->sin_addr);
  std::uint8_t length = 0;
  for (unsigned i = 0; i < address.bits() / 8; ++i) {
    length = static_cast<std::uint8_t>(length + std::countl_one(bytes[i]));
    if (bytes[i] != 0xff) break;
  }
  return length;
}

}  // namespace

Outcome<std::vector<IpPrefix>, int> host_prefixes() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> keeper(list, freeifaddrs);
  std::vector<IpPrefix> found;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    if (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) continue;
    const IpAddress ip = from_kernel(*i->ifa_addr).ip;
    found.push_back({ip, length_of(i->ifa_netmask, ip)});
  }
  return found;
}

Outcome<std::vector<IpAddress>, int> host_addresses() {
  const auto all = host_prefixes();
  if (!all) return fail(all.error());
  std::vector<IpAddress> found;
  for (const IpPrefix& p : *all) {
    if (std::find(found.begin(), found.end(), p.address) == found.end()) found.push_back(p.address);
  }
  return found;
}

bool is_host_address(const IpAddress& address) {
  const Socket s = datagram_socket(address);
  KernelAddress a;
  const socklen_t n = to_kernel({address, 0}, &a);
  // The kernel also binds to group addresses, which are not own addresses.
  const bool one = !address.is_any() && !address.is_multicast() && !address.is_broadcast();
  return one && s.is_open() && ::bind(s.fd(), &a.any, n) == 0;
}

// Connecting a datagram socket sends nothing, but determines its route.
Outcome<IpAddress, int> host_source_for(const IpAddress& to) {
  const Socket s = datagram_socket(to);
  if (!s.is_open()) return fail(errno);
  KernelAddress a;
  const socklen_t n = to_kernel({to, 9}, &a);
  if (::connect(s.fd(), &a.any, n) != 0) return fail(errno);
  return s.local().ip;
}

int why_no_way(const IpAddress& from, const IpAddress& to) {
  if (from.is_v6() != to.is_v6()) return ENETUNREACH;
  const Socket s = datagram_socket(to);
  if (!s.is_open()) return errno;
  KernelAddress own, peer;
  const socklen_t n = to_kernel({from, 0}, &own), m = to_kernel({to, 9}, &peer);
  const bool leads = ::bind(s.fd(), &own.any, n) == 0 && ::connect(s.fd(), &peer.any, m) == 0;
  return leads ? 0 : errno;
}

}  // namespace urnic::kernel_tcp
