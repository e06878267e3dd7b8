// GIDs of RoCE v2: an IPv6 address unchanged, an IPv4 address as ::ffff:a.b.c.d (IB-143).
//
// Pure; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/ip_address.h"

namespace urnic::ib_cm {

using Gid = std::array<std::uint8_t, 16>;

constexpr Gid gid_of(const IpAddress& a) {
  Gid g{};
  const ByteView bytes = a.bytes();
  if (a.is_v4()) g[10] = g[11] = 0xff;
  for (std::size_t i = 0; i < bytes.size(); ++i) g[g.size() - bytes.size() + i] = bytes[i];
  return g;
}

constexpr IpAddress address_of(const Gid& g) {
  return IpAddress::v6(g).unmapped();
}

}  // namespace urnic::ib_cm
