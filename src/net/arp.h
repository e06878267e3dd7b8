// ARP for IPv4 over Ethernet (RFC 826), with the probes and announcements of RFC 5227.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/ip_address.h"
#include "net/ethernet.h"

namespace urnic::net {

inline constexpr std::size_t kArpPacket = 28;
inline constexpr std::uint16_t kArpRequest = 1;
inline constexpr std::uint16_t kArpReply = 2;

struct ArpPacket {
  std::uint16_t operation = 0;
  MacAddress sender_mac;
  IpAddress sender_ip;  // 0.0.0.0 in a probe
  MacAddress target_mac;
  IpAddress target_ip;
};

// nullopt if it is too short, not Ethernet/IPv4, or its operation is neither request nor reply.
inline std::optional<ArpPacket> parse_arp(ByteView b) {
  if (b.size() < kArpPacket) return std::nullopt;
  const std::uint8_t* p = b.data();
  if (load_be16(p) != 1 || load_be16(p + 2) != kEtherTypeIpv4 || p[4] != 6 || p[5] != 4) {
    return std::nullopt;
  }
  ArpPacket a;
  a.operation = load_be16(p + 6);
  if (a.operation != kArpRequest && a.operation != kArpReply) return std::nullopt;
  a.sender_mac = MacAddress::from_bytes(p + 8);
  a.sender_ip = IpAddress::v4(load_be32(p + 14));
  a.target_mac = MacAddress::from_bytes(p + 18);
  a.target_ip = IpAddress::v4(load_be32(p + 24));
  return a;
}

// Writes kArpPacket bytes to `dst`. Both addresses must be version 4.
inline void emit_arp(const ArpPacket& a, std::uint8_t* dst) {
  store_be16(dst, 1);
  store_be16(dst + 2, kEtherTypeIpv4);
  dst[4] = 6;
  dst[5] = 4;
  store_be16(dst + 6, a.operation);
  std::memcpy(dst + 8, a.sender_mac.bytes.data(), 6);
  store_be32(dst + 14, a.sender_ip.v4_value());
  std::memcpy(dst + 18, a.target_mac.bytes.data(), 6);
  store_be32(dst + 24, a.target_ip.v4_value());
}

}  // namespace urnic::net
