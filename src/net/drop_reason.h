// Reasons for dropping a received frame in the network layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace urnic::net {

enum class DropReason : std::uint8_t {
  None,
  Short,          // ends before its headers do, or the IP length exceeds the frame
  EtherType,      // neither IPv4, IPv6 nor ARP, or a second VLAN tag
  IpVersion,      // version field contradicts the EtherType
  IpHeader,       // IHL below 5 or beyond the datagram
  IpChecksum,     // IPv4 header checksum
  Fragment,       // never reassembled: urnic sends DF and expects the same (E-18)
  Ipv6Extension,  // chain too long, unknown option to discard on, segments left
  Source,         // not a valid source address (multicast, broadcast, unspecified)
  Destination,    // TCP, UDP and similar protocols to a multicast or broadcast address
  L4Short,        // TCP or ICMP header does not fit
  NotForUs,       // accepts(): other MAC, VLAN or address
  Count
};
inline constexpr std::size_t kDropReasons = static_cast<std::size_t>(DropReason::Count);

// The name for reports, e.g. "ip-checksum".
constexpr std::string_view drop_reason_name(DropReason r) {
  constexpr std::string_view kNames[kDropReasons] = {
      "none",        "short",    "ether-type",     "ip-version", "ip-header",    "ip-checksum",
      "ip-fragment", "ipv6-ext", "source-address", "multicast",  "short-layer4", "not-for-us"};
  return r < DropReason::Count ? kNames[static_cast<std::size_t>(r)] : "invalid";
}

}  // namespace urnic::net
