// The Ethernet II header with at most one IEEE 802.1Q tag.
//
// urnic sends untagged frames, or frames with one tag of priority 0. It ignores received priority
// bits and treats a priority tag (VLAN 0) as untagged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "base/ip_address.h"

namespace urnic::net {

inline constexpr std::size_t kEthernetHeader = 14;
inline constexpr std::size_t kVlanTag = 4;
inline constexpr std::uint16_t kVlanMask = 0x0fff;

inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeArp = 0x0806;
inline constexpr std::uint16_t kEtherTypeVlan = 0x8100;
inline constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;

struct EthernetHeader {
  MacAddress dst, src;
  std::uint16_t vlan = 0;  // 1..4094; 0: untagged
  std::uint16_t ether_type = 0;

  constexpr std::size_t size() const { return kEthernetHeader + (vlan != 0 ? kVlanTag : 0); }
};

// Writes `h` to `dst` (>= h.size() bytes); returns h.size().
inline std::size_t emit_ethernet(const EthernetHeader& h, std::uint8_t* dst) {
  std::memcpy(dst, h.dst.bytes.data(), 6);
  std::memcpy(dst + 6, h.src.bytes.data(), 6);
  std::uint8_t* type = dst + 12;
  if (h.vlan != 0) {
    store_be16(type, kEtherTypeVlan);
    store_be16(type + 2, h.vlan & kVlanMask);
    type += kVlanTag;
  }
  store_be16(type, h.ether_type);
  return h.size();
}

}  // namespace urnic::net
