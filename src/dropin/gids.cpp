#include "dropin/gids.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>

#include "dropin/adapter.h"

namespace urnic::dropin {

ibv_gid to_gid(const Address& a) {
  ibv_gid gid{};
  if (a.any.sa_family == AF_INET6) {
    std::memcpy(gid.raw, &a.v6.sin6_addr, sizeof gid.raw);
  } else {
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, &a.v4.sin_addr, 4);
  }
  return gid;
}

namespace {

// The order in the table.
enum Rank { kV4, kV6, kLoopback, kLinkLocal };
Rank rank_of(const Address& a) {
  if (a.any.sa_family == AF_INET) {
    return ntohl(a.v4.sin_addr.s_addr) >> 24 == 127 ? kLoopback : kV4;
  }
  if (is_link_local(a)) return kLinkLocal;
  return IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr) ? kLoopback : kV6;
}

}  // namespace

std::vector<ibv_gid> present_gids(Adapter& adapter) {
  std::vector<std::pair<Rank, ibv_gid>> ranked;
  if (auto own = adapter.device().addresses()) {
    for (const std::string& text : *own) {
      Address a;
      if (!from_host(text, &a)) continue;
      ranked.emplace_back(rank_of(a), to_gid(a));
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ibv_gid> present;
  if (!adapter.is_ib_like() || ranked.empty()) {
    ibv_gid mac{};
    std::memcpy(mac.raw, adapter.mac(), 6);
    present.push_back(mac);
  }
  for (const auto& [rank, gid] : ranked) present.push_back(gid);
  return present;
}

unsigned interface_of(const ibv_gid& gid) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return 0;
  Address wanted;
  const bool of_ip = to_address(gid, &wanted);
  unsigned found = 0;
  for (const ifaddrs* i = all; i != nullptr && found == 0; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    Address own{};
    if (of_ip && !copy_address(i->ifa_addr, &own)) continue;
    const ibv_gid other = to_gid(own);
    const bool is_it = of_ip ? std::memcmp(other.raw, gid.raw, sizeof gid.raw) == 0
                             : (i->ifa_flags & IFF_LOOPBACK) == 0;
    if (is_it) found = if_nametoindex(i->ifa_name);
  }
  // The machine may have only loopback; all of 127/8 belongs to it, although it lists one address.
  if (found == 0 && (!of_ip || rank_of(wanted) == kLoopback)) found = if_nametoindex("lo");
  freeifaddrs(all);
  return found;
}

bool to_address(const ibv_gid& gid, Address* address) {
  // A MAC address by iWARP's convention, or all zeros.
  if (std::all_of(gid.raw + 6, gid.raw + 16, [](std::uint8_t b) { return b == 0; })) return false;
  sockaddr_in6 a{};
  a.sin6_family = AF_INET6;
  std::memcpy(&a.sin6_addr, gid.raw, sizeof gid.raw);
  return copy_address(reinterpret_cast<const sockaddr*>(&a), address);
}

}  // namespace urnic::dropin
