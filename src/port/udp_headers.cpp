#include "port/udp_headers.h"

#include <cstring>

#include "base/inet_checksum.h"

namespace urnic::port {
namespace {

constexpr std::size_t kEthernet = 14, kIpv4 = 20, kIpv6 = 40, kUdp = 8;
constexpr std::uint16_t kTypeIpv4 = 0x0800, kTypeIpv6 = 0x86dd, kDontFragment = 0x4000;
constexpr std::uint8_t kProtocolUdp = 17, kHops = 64;

bool is_plain_ipv4(const std::uint8_t* ip) {
  return ip[0] == 0x45 && load_be16(ip + 4) == 0 && load_be16(ip + 6) == kDontFragment &&
         ip[9] == kProtocolUdp;
}
bool is_plain_ipv6(const std::uint8_t* ip) {
  return ip[0] >> 4 == 6 && ip[6] == kProtocolUdp;
}

}  // namespace

std::optional<UdpDatagram> parse_udp_frame(ByteView frame) {
  if (frame.size() < kEthernet + kIpv4 + kUdp) return std::nullopt;
  const std::uint16_t type = load_be16(frame.data() + 12);
  const std::uint8_t* const ip = frame.data() + kEthernet;
  UdpDatagram d;
  std::size_t header = kIpv4, bytes = 0;
  if (type == kTypeIpv4 && is_plain_ipv4(ip)) {
    d.source = IpAddress::from_bytes({ip + 12, 4});
    d.destination = IpAddress::from_bytes({ip + 16, 4});
    d.traffic_class = ip[1];
    bytes = load_be16(ip + 2);
  } else if (type == kTypeIpv6 && frame.size() >= kMostUdpHeaders && is_plain_ipv6(ip)) {
    header = kIpv6;
    d.source = IpAddress::from_bytes({ip + 8, 16});
    d.destination = IpAddress::from_bytes({ip + 24, 16});
    d.traffic_class = static_cast<std::uint8_t>(load_be16(ip) >> 4);
    bytes = kIpv6 + load_be16(ip + 4);
  } else {
    return std::nullopt;
  }
  const std::uint8_t* const udp = ip + header;
  if (bytes < header + kUdp || kEthernet + bytes > frame.size()) return std::nullopt;
  if (load_be16(udp) != kRocePort || load_be16(udp + 2) != kRocePort ||
      load_be16(udp + 4) != bytes - header) {
    return std::nullopt;
  }
  d.payload = static_cast<std::uint32_t>(kEthernet + header + kUdp);
  d.length = static_cast<std::uint32_t>(bytes - header - kUdp);
  return d;
}

std::size_t write_udp_headers(const UdpDatagram& d, const std::uint8_t (&mac)[6],
                              std::uint8_t* payload) {
  const bool v6 = d.source.is_v6();
  const std::size_t header = v6 ? kIpv6 : kIpv4, all = kEthernet + header + kUdp;
  std::uint8_t* const frame = payload - all;
  std::memset(frame, 0, all);
  std::memcpy(frame, mac, sizeof mac);
  constexpr std::uint8_t kBeyond[] = {2, 0, 0, 0, 0, 2};
  std::memcpy(frame + 6, kBeyond, sizeof kBeyond);
  store_be16(frame + 12, v6 ? kTypeIpv6 : kTypeIpv4);
  std::uint8_t* const ip = frame + kEthernet;
  std::uint8_t* const udp = ip + header;
  const auto udp_bytes = static_cast<std::uint16_t>(kUdp + d.length);
  if (v6) {
    store_be16(ip, static_cast<std::uint16_t>(0x6000 | d.traffic_class << 4));
    store_be16(ip + 4, udp_bytes);
    ip[6] = kProtocolUdp;
    ip[7] = kHops;
    std::memcpy(ip + 8, d.source.bytes().data(), 16);
    std::memcpy(ip + 24, d.destination.bytes().data(), 16);
  } else {
    ip[0] = 0x45;
    ip[1] = d.traffic_class;
    store_be16(ip + 2, static_cast<std::uint16_t>(kIpv4 + udp_bytes));
    store_be16(ip + 6, kDontFragment);
    ip[8] = kHops;
    ip[9] = kProtocolUdp;
    std::memcpy(ip + 12, d.source.bytes().data(), 4);
    std::memcpy(ip + 16, d.destination.bytes().data(), 4);
    store_be16(ip + 10, inet_checksum(inet_sum_words(ip, kIpv4)));
  }
  store_be16(udp, d.source_port);
  store_be16(udp + 2, kRocePort);
  store_be16(udp + 4, udp_bytes);
  return all;
}

}  // namespace urnic::port
