#include "roce/paths.h"

namespace urnic::roce {

bool Paths::find(Path* path, const ib::AddressVector& av, Instant now) {
  using Kind = net::Resolution::Kind;
  if (path->found()) return true;
  const net::Resolution r = wire_.interface().resolve(av.remote, now);
  path->next_hop = r.next_hop;
  switch (r.kind) {
    case Kind::Mac:
      path->headers = headers_to(r.mac, av, path->marked);
      path->route = Route::Known;
      return true;
    case Kind::Loopback:
      path->headers = headers_to(wire_.interface().mac(), av, path->marked);
      path->route = Route::Own;
      return true;
    case Kind::Pending:
      path->route = Route::Awaited;
      return false;
    case Kind::Unreachable:
      path->route = Route::None;
      return true;
  }
  return false;
}

void Paths::heard(Path* path, const ib::AddressVector& av, const IpAddress& from,
                  const MacAddress& mac) const {
  if (path->route != Route::Awaited || path->next_hop != from || mac.is_multicast()) return;
  path->headers = headers_to(mac, av, path->marked);
  path->route = Route::Known;
}

// The lower two bits (ECN) belong to the network; a program sets only the upper six.
FrameHeaders Paths::headers_to(const MacAddress& to, const ib::AddressVector& av,
                               bool marked) const {
  constexpr unsigned kEct0 = 2, kEcn = 3;
  const net::Interface& interface = wire_.interface();
  FrameConfig c{.source = interface.mac(),
                .destination = to,
                .vlan = interface.vlan(),
                .av = av,
                .fixed_source_port = wire_.udp_source_port()};
  if (marked) c.av.traffic_class = static_cast<std::uint8_t>((av.traffic_class & ~kEcn) | kEct0);
  return FrameHeaders(c);
}

Paths::Opened Paths::open(const ib::AddressVector& av, Instant now) {
  if (!address_fits(av) || !wire_.interface().is_own(av.local)) return {};
  const std::uint32_t handle = handles_.open(av);
  if (handle == 0) return {Modified::Ok, 0};
  try {
    find(&handles_.find(handle)->path, av, now);
  } catch (...) {
    handles_.close(handle);
    throw;
  }
  return {Modified::Ok, handle};
}

void Paths::forget(const IpAddress* next_hop, bool failed) {
  handles_.for_each([&](AddressHandles::Handle& h) { h.path.forget(next_hop, failed); });
}

}  // namespace urnic::roce
