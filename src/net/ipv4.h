// The IPv4 header (RFC 791). Received options are skipped; none are sent. Fragments are never
// reassembled (E-18), and all packets are sent with DF (RFC 1191).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/inet_checksum.h"
#include "base/ip_address.h"

namespace urnic::net {

inline constexpr std::size_t kIpv4Header = 20;
inline constexpr std::size_t kIpv4HeaderMax = 60;
inline constexpr std::uint16_t kIpv4DontFragment = 0x4000;
inline constexpr std::uint16_t kIpv4MoreFragments = 0x2000;
inline constexpr std::uint16_t kIpv4OffsetMask = 0x1fff;

inline constexpr std::uint8_t kProtoIcmp = 1;
inline constexpr std::uint8_t kProtoTcp = 6;
inline constexpr std::uint8_t kProtoUdp = 17;
inline constexpr std::uint8_t kProtoIcmpv6 = 58;

struct Ipv4Header {
  std::uint8_t tos = 0;  // DSCP and ECN
  std::uint16_t total_len = 0;
  std::uint16_t id = 0;
  std::uint16_t fragment = kIpv4DontFragment;  // flags and offset as on the wire
  std::uint8_t ttl = 64;
  std::uint8_t protocol = 0;
  IpAddress src, dst;

  bool is_fragment() const { return (fragment & (kIpv4MoreFragments | kIpv4OffsetMask)) != 0; }
};

struct Ipv4View {
  Ipv4Header header;
  std::size_t header_len = 0;  // options included
};

// Checks the structure only: `b` must contain the header with its options. The caller checks the
// checksum, and total_len against the frame (classify.cpp distinguishes these errors; a quote in
// ICMP is truncated by design).
inline std::optional<Ipv4View> parse_ipv4(ByteView b) {
  if (b.size() < kIpv4Header || b[0] >> 4 != 4) return std::nullopt;
  Ipv4View v;
  const std::uint8_t* p = b.data();
  v.header_len = std::size_t{b[0] & 0x0fu} * 4;
  if (v.header_len < kIpv4Header || v.header_len > b.size()) return std::nullopt;
  v.header.tos = p[1];
  v.header.total_len = load_be16(p + 2);
  v.header.id = load_be16(p + 4);
  v.header.fragment = load_be16(p + 6);
  v.header.ttl = p[8];
  v.header.protocol = p[9];
  v.header.src = IpAddress::v4(load_be32(p + 12));
  v.header.dst = IpAddress::v4(load_be32(p + 16));
  return v;
}

// The sum of the words of a short header, inlined, because a call to the vector kernel would cost
// more than the sum.
inline std::uint32_t ipv4_header_sum(const std::uint8_t* p, std::size_t header_len) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < header_len; i += 2) sum += load_be16(p + i);
  return sum;
}

// True if the header checksum is right; `p` has header_len bytes.
inline bool ipv4_checksum_ok(const std::uint8_t* p, std::size_t header_len) {
  return inet_fold(ipv4_header_sum(p, header_len)) == 0xffff;
}

// Writes kIpv4Header bytes with a valid checksum.
inline void emit_ipv4(const Ipv4Header& h, std::uint8_t* dst) {
  dst[0] = 0x45;
  dst[1] = h.tos;
  store_be16(dst + 2, h.total_len);
  store_be16(dst + 4, h.id);
  store_be16(dst + 6, h.fragment);
  dst[8] = h.ttl;
  dst[9] = h.protocol;
  store_be16(dst + 10, 0);
  store_be32(dst + 12, h.src.v4_value());
  store_be32(dst + 16, h.dst.v4_value());
  store_be16(dst + 10, inet_checksum(ipv4_header_sum(dst, kIpv4Header)));
}

// Pseudo-header sum (RFC 9293, 3.1): add inet_sum of the TCP or ICMPv6 bytes, then fold.
inline std::uint32_t pseudo_sum_v4(const std::uint8_t* src_dst, std::uint8_t protocol,
                                   std::uint32_t l4_len) {
  return std::uint32_t{load_be16(src_dst)} + load_be16(src_dst + 2) + load_be16(src_dst + 4) +
         load_be16(src_dst + 6) + protocol + l4_len;
}

}  // namespace urnic::net
