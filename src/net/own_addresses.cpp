#include "net/own_addresses.h"

#include <algorithm>
#include <bit>

#include "base/bytes.h"
#include "net/addressing.h"

namespace urnic::net {
namespace {

unsigned common_prefix(const IpAddress& a, const IpAddress& b) {
  const ByteView x = a.bytes(), y = b.bytes();
  unsigned bits = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto diff = static_cast<std::uint8_t>(x[i] ^ y[i]);
    if (diff != 0) return bits + static_cast<unsigned>(std::countl_zero(diff));
    bits += 8;
  }
  return bits;
}

}  // namespace

bool is_subnet_broadcast(const IpPrefix& p, const IpAddress& a) {
  // This is called with the source of every datagram that does not belong to a TCP connection.
  if (a.is_v6() || p.address.is_v6() || p.length > 30) return false;
  const std::uint32_t host = 0xffffffffu >> p.length;
  const std::uint32_t bits = a.v4_value();
  if (((bits ^ p.address.v4_value()) & ~host) != 0) return false;
  return (bits & host) == host || (bits & host) == 0;
}

void OwnAddresses::add(const IpPrefix& p, AddressState state) {
  OwnAddress own;
  own.prefix = p;
  own.state = state;
  own_.push_back(own);
}

void OwnAddresses::keep_only(const std::vector<IpPrefix>& now, AddressState state_of_new) {
  std::erase_if(own_, [&](const OwnAddress& own) {
    return std::find(now.begin(), now.end(), own.prefix) == now.end();
  });
  for (const IpPrefix& p : now) {
    if (find(p.address) == nullptr) add(p, state_of_new);
  }
}

OwnAddress* OwnAddresses::find(const IpAddress& a) {
  for (OwnAddress& own : own_) {
    if (own.prefix.address == a) return &own;
  }
  return nullptr;
}

bool OwnAddresses::free_for_others(const IpAddress& a) const {
  return std::none_of(own_.begin(), own_.end(), [&](const OwnAddress& own) {
    return own.prefix.address == a || is_subnet_broadcast(own.prefix, a);
  });
}

bool OwnAddresses::any_v6() const {
  return std::any_of(own_.begin(), own_.end(),
                     [](const OwnAddress& own) { return own.prefix.address.is_v6(); });
}

std::optional<IpAddress> OwnAddresses::choose_source(const IpAddress& dst,
                                                     const IpAddress& hop) const {
  const OwnAddress* best = nullptr;
  // A higher rank is better: the address itself, the right scope (of this host, of this link), the
  // network of the next hop, the longest match (RFC 6724 rules 1, 2, 5 and 8). The configured order
  // decides between equals.
  unsigned best_rank = 0;
  for (const OwnAddress& own : own_) {
    const IpAddress& a = own.prefix.address;
    if (own.state != AddressState::Usable || a.is_v6() != dst.is_v6()) continue;
    unsigned rank = 1 + common_prefix(a, dst);
    if (own.prefix.contains(hop)) rank += 1000;
    if (a.is_link_local() == dst.is_link_local()) rank += 2000;
    if (a.is_loopback() == dst.is_loopback()) rank += 4000;
    if (a == dst) rank += 8000;
    if (rank > best_rank) {
      best_rank = rank;
      best = &own;
    }
  }
  if (best == nullptr) return std::nullopt;
  return best->prefix.address;
}

std::vector<IpAddress> OwnAddresses::groups() const {
  std::vector<IpAddress> groups;
  for (const OwnAddress& own : own_) {
    if (!own.prefix.address.is_v6() || own.state == AddressState::Duplicate) continue;
    const IpAddress group = solicited_node(own.prefix.address);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

std::optional<IpAddress> OwnAddresses::usable_link_local() const {
  std::optional<IpAddress> found;
  for (const OwnAddress& own : own_) {
    const IpAddress& a = own.prefix.address;
    if (a.is_v6() && a.is_link_local() && own.state == AddressState::Usable) found = a;
  }
  return found;
}

Instant OwnAddresses::next_due() const {
  Instant due = Instant::never();
  for (const OwnAddress& own : own_) due = earlier(due, own.due);
  return due;
}

}  // namespace urnic::net
