#include "net/classify.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "net/arp.h"
#include "net/ethernet.h"
#include "net/icmp.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::net {
namespace {

constexpr std::size_t kTcpHeader = 20;

void refuse(Classified& c, DropReason why) {
  c.kind = FrameKind::Drop;
  c.reason = why;
}

// Classifies a well-formed datagram by protocol number and destination. `in_head` is the number of
// available bytes of layer 4; `group` is true if the destination is not a single host.
void settle_kind(Classified& c, std::size_t in_head, bool group, bool src_unspecified) {
  // RFC 1122, 3.2.1.3: such a source cannot receive an answer, whatever the protocol. Neighbour
  // discovery may begin without an address (RFC 4861, 4.1 and 4.3) and checks that itself.
  if (src_unspecified && !(c.v6 && c.protocol == kProtoIcmpv6)) {
    return refuse(c, DropReason::Source);
  }
  if (c.protocol == kProtoTcp) {
    // RFC 9293, 3.10.7.2 and RFC 1122, 4.2.3.10: no connection with a multicast or broadcast
    // address.
    if (group) return refuse(c, DropReason::Destination);
    if (c.l4_len < kTcpHeader || in_head < kTcpHeader) return refuse(c, DropReason::L4Short);
    c.kind = FrameKind::Tcp;
    return;
  }
  if (c.protocol == (c.v6 ? kProtoIcmpv6 : kProtoIcmp)) {
    if (c.l4_len < kIcmpHeader) return refuse(c, DropReason::L4Short);
    c.kind = c.v6 ? FrameKind::Icmp6 : FrameKind::Icmp;
    return;
  }
  if (group) return refuse(c, DropReason::Destination);
  c.kind = FrameKind::Other;
}

void look_at_ipv4(Classified& c, ByteView ip, std::size_t whole) {
  if (ip.size() < kIpv4Header) return refuse(c, DropReason::Short);
  const std::uint8_t* p = ip.data();
  if (p[0] >> 4 != 4) return refuse(c, DropReason::IpVersion);
  const std::size_t header_len = std::size_t{p[0] & 0x0fu} * 4;
  const std::size_t total = load_be16(p + 2);
  if (header_len < kIpv4Header || header_len > total) return refuse(c, DropReason::IpHeader);
  if (total > whole || header_len > ip.size()) return refuse(c, DropReason::Short);
  if (!ipv4_checksum_ok(p, header_len)) return refuse(c, DropReason::IpChecksum);
  if ((load_be16(p + 6) & (kIpv4MoreFragments | kIpv4OffsetMask)) != 0) {
    return refuse(c, DropReason::Fragment);
  }
  c.ecn = p[1] & 3;
  c.ttl = p[8];
  c.protocol = p[9];
  // Compares the addresses as integers. The address objects are for the caller; reading them here
  // just after writing them would cost more than all other work.
  const std::uint32_t src = load_be32(p + 12), dst = load_be32(p + 16);
  const auto group = [](std::uint32_t a) { return a >> 28 == 0xe || a == 0xffffffff; };
  new (&c.src) IpAddress(IpAddress::v4(src));  // in place, without a temporary copy
  new (&c.dst) IpAddress(IpAddress::v4(dst));
  if (group(src)) return refuse(c, DropReason::Source);
  c.l4_offset = static_cast<std::uint16_t>(c.l3_offset + header_len);
  c.l4_len = static_cast<std::uint32_t>(total - header_len);
  c.pseudo_sum = pseudo_sum_v4(p + 12, c.protocol, c.l4_len);
  // 0.0.0.0, or a host of "this network".
  settle_kind(c, ip.size() - header_len, group(dst), src >> 24 == 0);
}

void look_at_ipv6(Classified& c, ByteView ip, std::size_t whole) {
  c.v6 = true;
  if (ip.size() < kIpv6Header) return refuse(c, DropReason::Short);
  const std::uint8_t* p = ip.data();
  if (p[0] >> 4 != 6) return refuse(c, DropReason::IpVersion);
  const std::size_t total = kIpv6Header + load_be16(p + 4);
  if (total > whole) return refuse(c, DropReason::Short);
  c.ecn = (p[1] >> 4) & 3;
  c.ttl = p[7];
  c.src = load_ipv6(p + 8);
  c.dst = load_ipv6(p + 24);
  // Extension headers are parsed only inside the datagram, not in padding after it.
  const ByteView inside = ip.first(std::min(ip.size(), total));
  const Ipv6Chain chain = walk_ipv6(inside, p[6]);
  if (chain.problem != DropReason::None) return refuse(c, chain.problem);
  c.protocol = chain.protocol;
  // A multicast address, or an IPv4-mapped address, which must not appear on the wire.
  const bool mapped = load_be64(p + 8) == 0 && load_be32(p + 16) == 0xffff;
  if (p[8] == 0xff || mapped) return refuse(c, DropReason::Source);
  c.l4_offset = static_cast<std::uint16_t>(c.l3_offset + chain.offset);
  c.l4_len = static_cast<std::uint32_t>(total - chain.offset);
  c.pseudo_sum = pseudo_sum_v6(p + 8, c.protocol, c.l4_len);
  const bool unspecified = (load_be64(p + 8) | load_be64(p + 16)) == 0;
  settle_kind(c, inside.size() - chain.offset, p[24] == 0xff, unspecified);
}

}  // namespace

Classified classify(ByteView head, std::uint32_t total_len) {
  Classified c;
  // Parsed by hand: a header object would be written to memory and read back, which costs time on
  // the FAST path.
  std::size_t l3 = kEthernetHeader;
  if (head.size() < l3 || total_len < head.size()) {
    refuse(c, DropReason::Short);
    return c;
  }
  const std::uint8_t* p = head.data();
  std::memcpy(c.dst_mac.bytes.data(), p, 6);
  std::memcpy(c.src_mac.bytes.data(), p + 6, 6);
  std::uint16_t ether_type = load_be16(p + 12);
  if (ether_type == kEtherTypeVlan) {
    l3 += kVlanTag;
    if (head.size() < l3) {
      refuse(c, DropReason::Short);
      return c;
    }
    c.vlan = load_be16(p + 14) & kVlanMask;
    ether_type = load_be16(p + 16);
  }
  c.l3_offset = static_cast<std::uint16_t>(l3);
  const ByteView rest = head.subspan(l3);
  switch (ether_type) {
    case kEtherTypeIpv4:
      look_at_ipv4(c, rest, total_len - l3);
      break;
    case kEtherTypeIpv6:
      look_at_ipv6(c, rest, total_len - l3);
      break;
    case kEtherTypeArp:
      if (rest.size() < kArpPacket) {
        refuse(c, DropReason::Short);
      } else {
        c.kind = FrameKind::Arp;
      }
      break;
    default:
      refuse(c, DropReason::EtherType);
  }
  return c;
}

Classified classify_datagram(ByteView head, std::uint32_t total_len) {
  Classified c;
  if (head.empty() || total_len < head.size()) {
    refuse(c, DropReason::Short);
  } else if (head[0] >> 4 == 4) {
    look_at_ipv4(c, head, total_len);
  } else if (head[0] >> 4 == 6) {
    look_at_ipv6(c, head, total_len);
  } else {
    refuse(c, DropReason::IpVersion);
  }
  return c;
}

}  // namespace urnic::net
