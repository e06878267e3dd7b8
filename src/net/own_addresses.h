// The addresses of an interface, and which of them may be used.
#pragma once

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
  // Probes and announcements still to be sent, and when.
  unsigned probes_left = 0, announcements_left = 0;
  Instant due = Instant::never();
  Instant defended = Instant::from_ns(std::numeric_limits<std::int64_t>::min() / 2);
};

// The first or the last address of a network of version 4, where that is no host.
bool is_subnet_broadcast(const IpPrefix& p, const IpAddress& a);

class OwnAddresses {
 public:
  void add(const IpPrefix& p, AddressState state);
  // Those of `now` and no others; one that stays keeps its state.
  void keep_only(const std::vector<IpPrefix>& now, AddressState state_of_new);
  const std::vector<OwnAddress>& all() const { return own_; }
  std::vector<OwnAddress>& all() { return own_; }
  // Null where it is none of ours.
  OwnAddress* find(const IpAddress& a);
  bool usable(const IpAddress& a) const {
    for (const OwnAddress& own : own_) {
      if (own.prefix.address == a) return own.state == AddressState::Usable;
    }
    return false;
  }
  // Another host can have it: not ours, no broadcast of a network of ours.
  bool free_for_others(const IpAddress& a) const;
  bool any_v6() const;
  // The one to send to `dst` from, by way of `hop` (RFC 6724).
  std::optional<IpAddress> choose_source(const IpAddress& dst, const IpAddress& hop) const;
  // Groups we are in because of them (RFC 4861, 7.2.1), each once.
  std::vector<IpAddress> groups() const;
  std::optional<IpAddress> usable_link_local() const;
  Instant next_due() const;

 private:
  std::vector<OwnAddress> own_;
};

}  // namespace urnic::net
