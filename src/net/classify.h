// First look at a received frame: what it is, where its layers begin, who sent it to whom. A pure
// function of the bytes; what it needs of a TCP frame it does in one pass, so that the engine can
// run it over a whole burst before anything else (D3).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/ip_address.h"
#include "net/drop_reason.h"

namespace urnic::net {

enum class FrameKind : std::uint8_t {
  Drop,   // see `reason`
  Tcp,    // l4 is the segment
  Arp,    // l3 is the ARP packet
  Icmp,   // l4 is the message
  Icmp6,  // l4 is the message; neighbour discovery included
  Other,  // well-formed IP to a unicast address, of a protocol urnic does not speak
};

// How much of a frame's beginning the engine should offer: tagged Ethernet, IPv6 with 74 bytes of
// extension headers (or IPv4 with all its options) and a full TCP header.
inline constexpr std::size_t kHeadSpan = 192;

inline constexpr std::uint8_t kCongestionExperienced = 3;  // of Classified::ecn (RFC 3168, 5)

struct Classified {
  FrameKind kind = FrameKind::Drop;
  DropReason reason = DropReason::None;
  std::uint8_t protocol = 0;  // of layer 4
  std::uint8_t ttl = 0;       // hop limit of version 6
  std::uint8_t ecn = 0;       // the two ECN bits (RFC 3168)
  bool v6 = false;
  std::uint16_t vlan = 0;       // 0 untagged
  std::uint16_t l3_offset = 0;  // from the start of the frame
  std::uint16_t l4_offset = 0;
  std::uint32_t l4_len = 0;      // by the IP length: Ethernet padding is not in it
  std::uint32_t pseudo_sum = 0;  // unfolded; add inet_sum of the l4_len bytes, fold: 0xffff is good
  MacAddress src_mac, dst_mac;
  IpAddress src, dst;
};

// `head` is the beginning of the frame, the whole of it or at least what holds its headers, and
// must not change during the call (E-19: copied out when the memory is shared with a peer).
// `total_len` is the length of the whole frame. IPv4 header checksums are verified, fragments
// refused (E-18), the layer 4 checksum is not looked at. For kind Tcp, 20 bytes of TCP header lie
// inside `head`.
Classified classify(ByteView head, std::uint32_t total_len);

// The same for a bare IP datagram (no Ethernet header): l3_offset is 0, MACs are zero.
Classified classify_datagram(ByteView head, std::uint32_t total_len);

}  // namespace urnic::net
