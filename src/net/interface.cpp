#include "net/interface.h"

#include <algorithm>

#include "net/addressing.h"
#include "net/arp.h"
#include "net/ethernet.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::net {
namespace {

constexpr std::uint32_t kMinMtu = 576;
constexpr Duration kAnnounceInterval = Duration::s(2);  // RFC 5227, 1.1
constexpr unsigned kAnnouncements = 2;
constexpr Duration kDefendInterval = Duration::s(10);
constexpr Duration kMldRepeat = Duration::s(1);  // RFC 3810, 9.11
constexpr unsigned kMldReports = 2;

// True if a configured address can belong to a host.
bool host_address(const IpPrefix& p) {
  const IpAddress& a = p.address;
  return !a.is_any() && !a.is_multicast() && !a.is_broadcast() && !is_subnet_broadcast(p, a) &&
         !a.is_v4_mapped() && p.length <= a.bits();
}

MacAddress mac_of(const InterfaceConfig& c) {
  return c.mac.is_zero() && !c.addresses.empty() ? mac_from_ip(c.addresses.front().address) : c.mac;
}

}  // namespace

std::string check(const InterfaceConfig& c) {
  if (c.addresses.empty() && !(c.link_local && !c.mac.is_zero()))
    return "address: none is configured";
  if (c.mac.is_multicast()) return "mac " + c.mac.to_string() + ": must be a unicast address";
  if (c.vlan > 4094) return "vlan " + std::to_string(c.vlan) + ": must be between 0 and 4094";
  if (c.mtu < kMinMtu || c.mtu > 65535) {
    return "mtu " + std::to_string(c.mtu) + ": must be between 576 and 65535";
  }
  RouteTable connected;
  for (const IpPrefix& p : c.addresses) {
    if (!host_address(p))
      return "address " + p.to_string() + ": must be a unicast address of a host";
    if (p.address.is_v6() && c.mtu < kIpv6MinMtu) {
      return "mtu " + std::to_string(c.mtu) + ": must be at least 1280 with IPv6 addresses";
    }
    connected.add({p, std::nullopt});
  }
  for (const Route& r : c.routes) {
    if (!r.gateway) connected.add(r);
  }
  for (const Route& r : c.routes) {
    if (r.destination.length > r.destination.address.bits()) {
      return "route " + r.destination.to_string() + ": invalid prefix length";
    }
    if (!r.gateway) continue;
    const std::string what =
        "route " + r.destination.to_string() + " by " + r.gateway->to_string() + ": ";
    if (r.gateway->is_v6() != r.destination.address.is_v6()) return what + "the IP versions differ";
    const bool local = r.gateway->is_v6() && r.gateway->is_link_local();
    if (!local && connected.lookup(*r.gateway) == nullptr) {
      return what + "the gateway is not in a network of this device";
    }
  }
  return "";
}

Interface::Interface(InterfaceConfig config)
    : config_(std::move(config)),
      cache_(config_.neighbour_limit, config_.neighbour),
      output_(mac_of(config_), config_.vlan, config_.mtu,
              std::max<std::size_t>(config_.output_bytes, 2 * (config_.mtu + std::size_t{64})),
              &counters_),
      icmp_limit_(config_.icmp_per_second, config_.icmp_burst),
      rng_(config_.seed),
      events_(&counters_.events_lost) {
  const auto add = [&](const IpPrefix& p) {
    if (addresses_.find(p.address) != nullptr) return;
    addresses_.add(p, config_.duplicate_detection ? AddressState::Tentative : AddressState::Usable);
    routes_.add({p, std::nullopt});
  };
  for (const IpPrefix& p : config_.addresses) add(p);
  if (config_.link_local && config_.mtu >= kIpv6MinMtu) add({link_local_from_mac(mac()), 64});
  for (const Route& r : config_.routes) routes_.add(r);
}

// ---- receiving ------------------------------------------------------------------------------

void Interface::input(const Classified& c, ByteView frame, Instant now) {
  if (c.kind == FrameKind::Drop) return counters_.drop(c.reason);
  const bool for_us = c.dst_mac == mac() || c.dst_mac.is_multicast();
  // A group address cannot be a source; an answer would be multicast.
  if (!for_us || c.vlan != config_.vlan || c.src_mac.is_multicast()) {
    return counters_.drop(DropReason::NotForUs);
  }
  switch (c.kind) {
    case FrameKind::Arp:
      input_arp(c, frame, now);
      break;
    case FrameKind::Icmp:
      input_icmp(c, frame, now);
      break;
    case FrameKind::Icmp6:
      input_icmp6(c, frame, now);
      break;
    case FrameKind::Other:
      ++counters_.other_ignored;
      break;
    case FrameKind::Tcp:
    case FrameKind::Drop:
      counters_.drop(DropReason::NotForUs);
      break;
  }
  drain_cache();
}

bool Interface::may_send(const IpAddress& a) const {
  const bool loopback_may = config_.only_neighbour.has_value();
  return (loopback_may || !a.is_loopback()) && addresses_.free_for_others(a);
}

// ---- sending --------------------------------------------------------------------------------

bool Interface::has_route(const IpAddress& dst) const {
  if (dst.is_any() || dst.is_multicast() || dst.is_broadcast()) return false;
  if (is_own(dst)) return true;
  if (config_.only_neighbour) return choose_source(dst).has_value();
  const Route* route = routes_.lookup(dst);
  return route != nullptr && (route->gateway || !is_subnet_broadcast(route->destination, dst));
}

Resolution Interface::resolve(const IpAddress& dst, Instant now) {
  using Kind = Resolution::Kind;
  if (!has_route(dst)) return {Kind::Unreachable, {}, dst};
  if (is_own(dst)) return {Kind::Loopback, mac(), dst};
  if (config_.only_neighbour) return {Kind::Mac, *config_.only_neighbour, dst};
  const IpAddress hop = routes_.lookup(dst)->gateway.value_or(dst);
  const auto found = cache_.lookup(hop, now);
  drain_cache();
  switch (found.kind) {
    case NeighbourCache::Lookup::Kind::Mac:
      return {Kind::Mac, found.mac, hop};
    case NeighbourCache::Lookup::Kind::Pending:
      return {Kind::Pending, {}, hop};
    case NeighbourCache::Lookup::Kind::Unreachable:
      break;
  }
  return {Kind::Unreachable, {}, hop};
}

std::optional<IpAddress> Interface::choose_source(const IpAddress& dst) const {
  const Route* route = routes_.lookup(dst);
  const IpAddress hop = route != nullptr && route->gateway ? *route->gateway : dst;
  return addresses_.choose_source(dst, hop);
}

void Interface::confirm(const IpAddress& next_hop, Instant now) {
  cache_.confirm(next_hop, now);
}

void Interface::doubt(const IpAddress& next_hop, Instant now) {
  cache_.doubt(next_hop, now);
  drain_cache();
}

// Turns requests of the cache into frames, and its events into ours.
void Interface::drain_cache() {
  for (const NeighbourCache::Request& r : cache_.requests()) {
    const auto src = choose_source(r.address);
    if (!src) continue;  // no usable own address yet: the cache repeats the request
    if (r.address.is_v4()) {
      output_.arp(kArpRequest, *src, r.to.value_or(MacAddress::broadcast()), MacAddress{},
                  r.address);
    } else {
      const IpAddress to = r.to ? r.address : solicited_node(r.address);
      NdMessage m;
      m.target = r.address;
      m.link_layer = mac();
      output_.nd(m, *src, to, r.to.value_or(multicast_mac(to)));
    }
  }
  cache_.requests().clear();
  for (const NeighbourEvent& e : cache_.events()) {
    Event out;
    out.address = e.address;
    out.mac = e.mac;
    switch (e.kind) {
      case NeighbourEvent::Kind::Usable:
        out.kind = Event::Kind::NeighbourUsable;
        break;
      case NeighbourEvent::Kind::Failed:
        out.kind = Event::Kind::NeighbourFailed;
        ++counters_.neighbours.failed;
        break;
      case NeighbourEvent::Kind::Forgotten:
        out.kind = Event::Kind::NeighbourForgotten;
        break;
    }
    events_.add(std::move(out));
  }
  cache_.events().clear();
  counters_.neighbours.evicted = cache_.evictions();
}

// ---- own addresses --------------------------------------------------------------------------

void Interface::duplicate(OwnAddress& own, const MacAddress& with) {
  own.state = AddressState::Duplicate;
  own.due = Instant::never();
  own.probes_left = own.announcements_left = 0;
  ++counters_.address_conflicts;
  Event e;
  e.kind = Event::Kind::AddressDuplicate;
  e.address = own.prefix.address;
  e.mac = with;
  events_.add(std::move(e));
}

// Another host claims a usable address of ours. RFC 5227 2.4 (c): a host that others depend on
// keeps the address. It answers with at most one announcement per interval, so that two such hosts
// do not flood the link.
void Interface::conflict(OwnAddress& own, const MacAddress& with, Instant now) {
  ++counters_.address_conflicts;
  if (now - own.defended < kDefendInterval) return;
  own.defended = now;
  ++counters_.address_defences;
  const IpAddress& a = own.prefix.address;
  if (a.is_v6()) {
    output_.announce_nd(a);
  } else {
    output_.arp(kArpRequest, a, MacAddress::broadcast(), MacAddress{}, a);
  }
  Event e;
  e.kind = Event::Kind::AddressConflict;
  e.address = a;
  e.mac = with;
  events_.add(std::move(e));
}

// Performs the due step: a probe, the end of probing, or an announcement.
void Interface::run_address(OwnAddress& own) {
  const IpAddress& a = own.prefix.address;
  const Instant at = own.due;
  own.due = Instant::never();
  if (own.state == AddressState::Tentative && own.probes_left != 0) {
    --own.probes_left;
    if (a.is_v6()) {
      NdMessage m;
      m.target = a;
      const IpAddress group = solicited_node(a);
      output_.nd(m, IpAddress::any_v6(), group, multicast_mac(group));
      own.due = at + config_.dad.retransmit;
      return;
    }
    output_.arp(kArpRequest, IpAddress::any_v4(), MacAddress::broadcast(), MacAddress{}, a);
    const auto lo = static_cast<std::uint64_t>(config_.dad.probe_min.count_ns());
    const auto hi = static_cast<std::uint64_t>(
        std::max(config_.dad.probe_min, config_.dad.probe_max).count_ns());
    own.due =
        at + (own.probes_left == 0 ? config_.dad.announce_wait
                                   : Duration::ns(static_cast<std::int64_t>(rng_.between(lo, hi))));
    return;
  }
  if (own.state == AddressState::Tentative) {
    own.state = AddressState::Usable;
    own.probes_left = 0;
    Event e;
    e.kind = Event::Kind::AddressUsable;
    e.address = a;
    events_.add(std::move(e));
    own.announcements_left = kAnnouncements;
  }
  if (own.announcements_left == 0) return;
  --own.announcements_left;
  if (a.is_v6()) {
    output_.announce_nd(a);
  } else {
    // RFC 5227, 3: an announcement is a request with our address as sender and target.
    output_.arp(kArpRequest, a, MacAddress::broadcast(), MacAddress{}, a);
  }
  if (own.announcements_left != 0) own.due = at + kAnnounceInterval;
}

// ---- time and link --------------------------------------------------------------------------

Instant Interface::next_deadline() const {
  return earlier(earlier(cache_.next_deadline(), mld_due_), addresses_.next_due());
}

void Interface::run_timers(Instant now) {
  for (;;) {
    const Instant due = next_deadline();
    if (due > now || due.is_never()) return;
    if (mld_due_ == due) {
      if (mld_left_ != 0) --mld_left_;
      mld_due_ = mld_left_ == 0 ? Instant::never() : due + kMldRepeat;
      output_.mld_report(addresses_);
    } else if (cache_.next_deadline() == due) {
      cache_.run_one(now);
      drain_cache();
    } else {
      for (OwnAddress& own : addresses_.all()) {
        if (own.due == due) {
          run_address(own);
          break;
        }
      }
    }
  }
}

void Interface::link_up(Instant now) {
  output_.go_up();
  cache_.link_up(now);
  Event recheck;
  recheck.kind = Event::Kind::Recheck;
  events_.add(recheck);
  if (config_.only_neighbour) return;
  if (addresses_.any_v6()) {
    mld_left_ = kMldReports;
    mld_due_ = now;
  }
  for (OwnAddress& own : addresses_.all()) {
    // An address in use stays in use when the link goes down and up; it is only announced again. An
    // address that was a duplicate may be free on the network that is connected now.
    if (own.state == AddressState::Usable) {
      own.announcements_left = kAnnouncements;
      own.due = now;
      continue;
    }
    own.state = AddressState::Tentative;
    own.probes_left = own.prefix.address.is_v6() ? 1 : config_.dad.probes;
    const auto wait = static_cast<std::uint64_t>(config_.dad.probe_wait.count_ns());
    own.due = now + Duration::ns(static_cast<std::int64_t>(rng_.below(wait + 1)));
  }
  run_timers(now);
  drain_cache();
}

void Interface::link_down() {
  output_.go_down();
  cache_.link_down();
  mld_due_ = Instant::never();
  mld_left_ = 0;
  for (OwnAddress& own : addresses_.all()) {
    own.due = Instant::never();
    own.announcements_left = 0;
  }
}

}  // namespace urnic::net
