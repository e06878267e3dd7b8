#include "port/own_links.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <memory>

namespace urnic::port {
namespace {

// Limits how often frames with an unknown source address make the port list all addresses.
constexpr std::chrono::milliseconds kSearchAgain{100};

}  // namespace

OwnLinks::OwnLinks(const std::optional<IpAddress>& only) : only_(only) {
  read();
}

std::uint32_t OwnLinks::find(const IpAddress& source) {
  for (bool again = false;; again = true) {
    for (const auto& [address, link] : links_) {
      if (address == source) return link;
    }
    const auto now = std::chrono::steady_clock::now();
    if (again || now - last_search_ < kSearchAgain) return 0;
    last_search_ = now;
    read();
  }
}

void OwnLinks::read() {
  links_.clear();
  if (only_ && only_->zone() != 0) {
    links_.emplace_back(only_->without_zone(), only_->zone());
    return;
  }
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> keeper(list, freeifaddrs);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET6) continue;
    sockaddr_in6 a;
    std::memcpy(&a, i->ifa_addr, sizeof a);
    std::array<std::uint8_t, 16> bytes;
    std::memcpy(bytes.data(), &a.sin6_addr, bytes.size());
    const IpAddress ip = IpAddress::v6(bytes);
    if (!only_ || *only_ == ip) links_.emplace_back(ip, if_nametoindex(i->ifa_name));
  }
}

}  // namespace urnic::port
