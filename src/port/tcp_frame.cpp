#include "port/tcp_frame.h"

#include "base/inet_checksum.h"

namespace urnic::port {
namespace {

constexpr std::uint32_t kEthernet = 14;
constexpr std::uint16_t kTypeIpv4 = 0x0800, kTypeIpv6 = 0x86dd, kTypeVlan = 0x8100,
                        kTypeServiceVlan = 0x88a8;
constexpr std::uint8_t kProtocolTcp = 6;
constexpr std::uint32_t kIpv6Header = 40;

// The lengths of the IP header and of the IP packet.
struct IpShape {
  std::uint32_t header = 0, packet = 0;
};

std::optional<IpShape> shape_ipv4(ByteView ip) {
  if (ip.size() < 20 || ip[0] >> 4 != 4) return std::nullopt;
  const std::uint32_t header = (ip[0] & 0x0fu) * 4;
  const bool fragment = (load_be16(&ip[6]) & 0x3fff) != 0;
  if (header < 20 || header > ip.size() || fragment || ip[9] != kProtocolTcp) return std::nullopt;
  return IpShape{header, load_be16(&ip[2])};
}

// Packets with extension headers are not supported here; they pass one by one.
std::optional<IpShape> shape_ipv6(ByteView ip) {
  if (ip.size() < kIpv6Header || ip[0] >> 4 != 6 || ip[6] != kProtocolTcp) return std::nullopt;
  return IpShape{kIpv6Header, kIpv6Header + load_be16(&ip[4])};
}

}  // namespace

std::optional<TcpFrame> parse_tcp_frame(ByteView head, std::uint32_t length, bool length_given) {
  if (head.size() < kEthernet || length < head.size()) return std::nullopt;
  std::uint32_t ip = kEthernet;
  std::uint16_t type = load_be16(&head[12]);
  for (int tags = 0; tags < 2 && (type == kTypeVlan || type == kTypeServiceVlan); ++tags) {
    if (head.size() < ip + 4) return std::nullopt;
    type = load_be16(&head[ip + 2]);
    ip += 4;
  }
  TcpFrame f;
  f.ipv6 = type == kTypeIpv6;
  if (!f.ipv6 && type != kTypeIpv4) return std::nullopt;
  const auto shape = f.ipv6 ? shape_ipv6(head.subspan(ip)) : shape_ipv4(head.subspan(ip));
  if (!shape) return std::nullopt;
  const std::uint32_t tcp = ip + shape->header;
  f.end = length_given ? ip + shape->packet : length;
  if (head.size() < tcp + 20 || f.end > length) return std::nullopt;
  const std::uint32_t tcp_header = (head[tcp + 12] >> 4) * 4u;
  if (tcp_header < 20 || tcp + tcp_header > head.size() || tcp + tcp_header > f.end) {
    return std::nullopt;
  }
  f.ip = static_cast<std::uint16_t>(ip);
  f.tcp = static_cast<std::uint16_t>(tcp);
  f.payload = static_cast<std::uint16_t>(tcp + tcp_header);
  return f;
}

std::uint64_t pseudo_sum(ByteView head, const TcpFrame& f, std::uint32_t tcp_length) {
  const ByteView addresses = f.ipv6 ? head.subspan(f.ip + 8u, 32) : head.subspan(f.ip + 12u, 8);
  return std::uint64_t{inet_sum(addresses)} + kProtocolTcp + (tcp_length >> 16) +
         (tcp_length & 0xffff);
}

void set_ip_length(std::uint8_t* head, const TcpFrame& f, std::uint32_t payload_length,
                   std::uint16_t ipv4_id) {
  std::uint8_t* ip = head + f.ip;
  const std::uint32_t tcp_header = static_cast<std::uint32_t>(f.payload - f.tcp);
  if (f.ipv6) {
    store_be16(ip + 4, static_cast<std::uint16_t>(tcp_header + payload_length));
    return;
  }
  const std::uint32_t header = static_cast<std::uint32_t>(f.tcp - f.ip);
  store_be16(ip + 2, static_cast<std::uint16_t>(header + tcp_header + payload_length));
  store_be16(ip + 4, ipv4_id);
  store_be16(ip + 10, 0);
  store_be16(ip + 10, inet_checksum(inet_sum({ip, header})));
}

}  // namespace urnic::port
