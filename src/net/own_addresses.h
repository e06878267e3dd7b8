// The addresses of an interface, and whether they may be used.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/ip_address.h"
#include "base/time.h"

namespace urnic::net {

enum class AddressState : std::uint8_t { Tentative, Usable, Duplicate };

struct OwnAddress {
  IpPrefix prefix;
  AddressState state = AddressState::Tentative;
  // Remaining probes and announcements, and the time of the next one.
  unsigned probes_left = 0, announcements_left = 0;
  Instant due = Instant::never();
  Instant defended = Instant::from_ns(std::numeric_limits<std::int64_t>::min() / 2);
};

// True for the first or last address of an IPv4 network, if it cannot belong to a host.
bool is_subnet_broadcast(const IpPrefix& p, const IpAddress& a);

class OwnAddresses {
 public:
  void add(const IpPrefix& p, AddressState state);
  // Replaces the addresses by `now`; an address that remains keeps its state.
  void keep_only(const std::vector<IpPrefix>& now, AddressState state_of_new);
  const std::vector<OwnAddress>& all() const { return own_; }
  std::vector<OwnAddress>& all() { return own_; }
  // Null if the address is not ours.
  OwnAddress* find(const IpAddress& a);
  bool usable(const IpAddress& a) const {
    for (const OwnAddress& own : own_) {
      if (own.prefix.address == a) return own.state == AddressState::Usable;
    }
    return false;
  }
  // True if another host can have it: it is not ours and not a broadcast address of our networks.
  bool free_for_others(const IpAddress& a) const;
  bool any_v6() const;
  // The source address for sending to `dst` through `hop` (RFC 6724).
  std::optional<IpAddress> choose_source(const IpAddress& dst, const IpAddress& hop) const;
  // The groups that these addresses require (RFC 4861, 7.2.1), each once.
  std::vector<IpAddress> groups() const;
  std::optional<IpAddress> usable_link_local() const;
  Instant next_due() const;

 private:
  std::vector<OwnAddress> own_;
};

// True for any_v4, any_v6 and one of `own`, usable or not yet.
inline bool may_bind(const std::vector<OwnAddress>& own, const IpAddress& a) {
  return a.is_any() || std::any_of(own.begin(), own.end(), [&](const OwnAddress& o) {
           return o.prefix.address == a && o.state != AddressState::Duplicate;
         });
}

}  // namespace urnic::net
