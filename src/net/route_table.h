// Determines whether a destination is on the link, behind a gateway, or unreachable. The longest
// prefix decides (E-30).
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/ip_address.h"

namespace urnic::net {

struct Route {
  IpPrefix destination;              // 0.0.0.0/0 or ::/0: the default route
  std::optional<IpAddress> gateway;  // empty: on-link
  constexpr bool operator==(const Route&) const = default;
};

class RouteTable {
 public:
  // Replaces an existing route for the same destination.
  void add(Route r) {
    r.destination.address = r.destination.network();
    const auto same = std::find_if(routes_.begin(), routes_.end(), [&](const Route& have) {
      return have.destination == r.destination;
    });
    if (same != routes_.end()) {
      *same = r;
      return;
    }
    const auto at = std::find_if(routes_.begin(), routes_.end(), [&](const Route& have) {
      return have.destination.length < r.destination.length;
    });
    routes_.insert(at, r);
  }
  // nullptr: unreachable. The pointer is valid until the next add.
  const Route* lookup(const IpAddress& dst) const {
    for (const Route& r : routes_) {  // longest prefixes first
      if (r.destination.contains(dst)) return &r;
    }
    return nullptr;
  }
  // True if the address is reached without a gateway.
  bool on_link(const IpAddress& a) const {
    const Route* r = lookup(a);
    return r != nullptr && !r->gateway;
  }
  // All routes, longest prefixes first.
  const std::vector<Route>& all() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace urnic::net
