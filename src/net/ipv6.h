// The IPv6 header and the walk over its extension headers (RFC 8200).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/ip_address.h"
#include "net/drop_reason.h"

namespace urnic::net {

inline constexpr std::size_t kIpv6Header = 40;
inline constexpr std::uint32_t kIpv6MinMtu = 1280;

inline constexpr std::uint8_t kExtHopByHop = 0;
inline constexpr std::uint8_t kExtRouting = 43;
inline constexpr std::uint8_t kExtFragment = 44;
inline constexpr std::uint8_t kExtDestination = 60;

struct Ipv6Header {
  std::uint8_t traffic_class = 0;  // DSCP and ECN
  std::uint32_t flow_label = 0;    // 20 bits
  std::uint16_t payload_len = 0;   // extension headers included
  std::uint8_t next_header = 0;
  std::uint8_t hop_limit = 64;
  IpAddress src = IpAddress::any_v6(), dst = IpAddress::any_v6();
};

inline IpAddress load_ipv6(const std::uint8_t* p) {
  std::array<std::uint8_t, 16> a;
  std::memcpy(a.data(), p, 16);
  return IpAddress::v6(a);
}

// Checks the structure only; the caller checks payload_len against the frame.
inline std::optional<Ipv6Header> parse_ipv6(ByteView b) {
  if (b.size() < kIpv6Header || b[0] >> 4 != 6) return std::nullopt;
  const std::uint32_t first = load_be32(b.data());
  Ipv6Header h;
  h.traffic_class = static_cast<std::uint8_t>(first >> 20);
  h.flow_label = first & 0xfffff;
  h.payload_len = load_be16(b.data() + 4);
  h.next_header = b[6];
  h.hop_limit = b[7];
  h.src = load_ipv6(b.data() + 8);
  h.dst = load_ipv6(b.data() + 24);
  return h;
}

// Writes kIpv6Header bytes.
inline void emit_ipv6(const Ipv6Header& h, std::uint8_t* dst) {
  store_be32(dst, 6u << 28 | std::uint32_t{h.traffic_class} << 20 | (h.flow_label & 0xfffff));
  store_be16(dst + 4, h.payload_len);
  dst[6] = h.next_header;
  dst[7] = h.hop_limit;
  std::memcpy(dst + 8, h.src.bytes().data(), 16);
  std::memcpy(dst + 24, h.dst.bytes().data(), 16);
}

// Pseudo-header sum (RFC 8200, 8.1) over the 32 bytes of both addresses.
inline std::uint32_t pseudo_sum_v6(const std::uint8_t* src_dst, std::uint8_t protocol,
                                   std::uint32_t l4_len) {
  std::uint32_t sum = protocol + (l4_len >> 16) + (l4_len & 0xffff);
  for (std::size_t i = 0; i < 32; i += 2) sum += load_be16(src_dst + i);
  return sum;
}

// The start of the upper layer. `problem` other than None means that there is none, and why.
struct Ipv6Chain {
  DropReason problem = DropReason::None;
  std::uint8_t protocol = 0;
  std::size_t offset = 0;  // from the start of the IPv6 header
};

// Walks hop-by-hop (first place only), routing and destination options. `b` starts at the IPv6
// header and may be cut anywhere; at most kIpv6ChainMax headers are followed.
// bound: IPv6 extension headers followed; beyond: the packet is dropped, counted; test:
// Classify.Ipv6ExtensionDefectsAreRefused_RFC8200
inline constexpr unsigned kIpv6ChainMax = 8;
Ipv6Chain walk_ipv6(ByteView b, std::uint8_t next_header);

}  // namespace urnic::net
