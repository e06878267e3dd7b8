// Addresses derived from other addresses.
#pragma once

#include <array>
#include <cstdint>

#include "base/ip_address.h"

namespace urnic::net {

// Derives a locally administered MAC from an IP address (E-34): 02:00 and the four bytes of an IPv4
// address; 02 and a hash of all bytes of an IPv6 address, so that different hosts almost certainly
// get different MACs.
constexpr MacAddress mac_from_ip(const IpAddress& ip) {
  const ByteView b = ip.bytes();
  if (ip.is_v4()) return {{0x02, 0x00, b[0], b[1], b[2], b[3]}};
  std::uint64_t mix = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const std::uint8_t byte : b) mix = (mix ^ byte) * 0x100000001b3ULL;
  mix ^= mix >> 40;
  MacAddress mac;
  mac.bytes[0] = 0x02;
  for (std::size_t i = 1; i < 6; ++i)
    mac.bytes[i] = static_cast<std::uint8_t>(mix >> (8 * (i - 1)));
  return mac;
}

// fe80::/64 with the modified EUI-64 of the MAC (RFC 4291, appendix A).
constexpr IpAddress link_local_from_mac(const MacAddress& mac) {
  const auto& m = mac.bytes;
  return IpAddress::v6({0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(m[0] ^ 0x02), m[1],
                        m[2], 0xff, 0xfe, m[3], m[4], m[5]});
}

// The solicited-node group ff02::1:ffXX:XXXX of an IPv6 address (RFC 4291, 2.7.1).
constexpr IpAddress solicited_node(const IpAddress& ip) {
  const ByteView b = ip.bytes();
  return IpAddress::v6({0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, b[13], b[14], b[15]});
}

// ff02::1
constexpr IpAddress all_nodes() {
  return IpAddress::v6({0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
}

// The Ethernet address of a multicast group (RFC 1112, 6.4; RFC 2464, 7).
constexpr MacAddress multicast_mac(const IpAddress& group) {
  const ByteView b = group.bytes();
  if (group.is_v6()) return {{0x33, 0x33, b[12], b[13], b[14], b[15]}};
  return {{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(b[1] & 0x7f), b[2], b[3]}};
}

}  // namespace urnic::net
