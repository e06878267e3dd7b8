#include "roce/frame.h"

#include <cstring>

#include "base/inet_checksum.h"
#include "ib/icrc.h"
#include "ib/packet.h"
#include "net/ethernet.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::roce {

bool is_roce(const net::Classified& c, ByteView head) {
  return c.kind == net::FrameKind::Other && c.protocol == net::kProtoUdp &&
         head.size() >= c.l4_offset + kUdpHeader && c.l4_len >= kUdpHeader &&
         load_be16(head.data() + c.l4_offset + 2) == ib::kUdpPort;
}

std::optional<Datagram> find_packet(const net::Classified& c, ByteView head) {
  const std::size_t ip = c.l4_offset - std::size_t{c.l3_offset};
  if (load_be16(head.data() + c.l4_offset + 4) != c.l4_len) return std::nullopt;
  if (c.v6 && ip != net::kIpv6Header) return std::nullopt;
  return Datagram{head.subspan(c.l3_offset, ip + kUdpHeader),
                  static_cast<std::uint32_t>(c.l4_offset + kUdpHeader),
                  static_cast<std::uint32_t>(c.l4_len - kUdpHeader)};
}

FrameHeaders::FrameHeaders(const FrameConfig& c) : v6_(c.av.remote.is_v6()) {
  const net::EthernetHeader eth{c.destination, c.source, c.vlan,
                                v6_ ? net::kEtherTypeIpv6 : net::kEtherTypeIpv4};
  ip_ = static_cast<std::uint8_t>(net::emit_ethernet(eth, bytes_.data()));
  std::uint8_t* p = bytes_.data() + ip_;
  const ib::AddressVector& av = c.av;
  if (v6_) {
    net::emit_ipv6(
        {av.traffic_class, c.flow_label, 0, net::kProtoUdp, av.hop_limit, av.local, av.remote}, p);
    p += net::kIpv6Header;
  } else {
    net::emit_ipv4({av.traffic_class, 0, 0, net::kIpv4DontFragment, av.hop_limit, net::kProtoUdp,
                    av.local, av.remote},
                   p);
    p += net::kIpv4Header;
  }
  store_be16(p, c.fixed_source_port != 0 ? c.fixed_source_port : av.source_port);
  store_be16(p + 2, ib::kUdpPort);
  size_ = static_cast<std::uint8_t>(p + kUdpHeader - bytes_.data());
}

std::size_t FrameHeaders::finish(std::uint8_t* dst, std::size_t packet,
                                 std::uint16_t identification) const {
  std::memcpy(dst, bytes_.data(), size_);
  std::uint8_t* const ip = dst + ip_;
  std::uint8_t* const udp = dst + size_ - kUdpHeader;
  const auto length = static_cast<std::uint16_t>(kUdpHeader + packet);
  store_be16(udp + 4, length);
  if (v6_) {
    store_be16(ip + 4, length);
  } else {
    store_be16(ip + 2, static_cast<std::uint16_t>(net::kIpv4Header + length));
    store_be16(ip + 4, identification);
    store_be16(ip + 10, 0);
    store_be16(ip + 10, inet_checksum(net::ipv4_header_sum(ip, net::kIpv4Header)));
  }
  ib::seal({ip, static_cast<std::size_t>(size_ - ip_)}, {dst + size_, packet});
  return size_ + packet;
}

}  // namespace urnic::roce
