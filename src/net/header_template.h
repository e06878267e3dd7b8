// The Ethernet and IP headers of a connection, built once and copied before every segment it sends.
// IPv4 headers set DF: path MTU discovery (RFC 1191) instead of fragments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "base/inet_checksum.h"
#include "base/ip_address.h"
#include "net/ethernet.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::net {

// Largest result of HeaderTemplate::size(): tagged Ethernet and IPv6.
inline constexpr std::size_t kHeaderTemplateMax = kEthernetHeader + kVlanTag + kIpv6Header;

// The length of the IP header of a segment to `dst`.
constexpr std::size_t ip_header_size(const IpAddress& dst) {
  return dst.is_v6() ? kIpv6Header : kIpv4Header;
}

struct HeaderTemplateConfig {
  MacAddress src_mac, dst_mac;
  std::uint16_t vlan = 0;
  IpAddress src, dst;     // of the same IP version
  std::uint8_t dscp = 0;  // 0..63
  std::uint8_t ttl = 64;
  std::uint32_t flow_label = 0;  // IPv6 only; constant per connection (RFC 6437)
};

class HeaderTemplate {
 public:
  HeaderTemplate() = default;
  explicit HeaderTemplate(const HeaderTemplateConfig& c) : vlan_(c.vlan != 0), v6_(c.dst.is_v6()) {
    const EthernetHeader eth{c.dst_mac, c.src_mac, c.vlan,
                             c.dst.is_v6() ? kEtherTypeIpv6 : kEtherTypeIpv4};
    const std::size_t l3 = emit_ethernet(eth, bytes_.data());
    std::uint8_t* ip = bytes_.data() + l3;
    const auto tos = static_cast<std::uint8_t>(c.dscp << 2);
    if (v6_) {
      emit_ipv6({tos, c.flow_label, 0, kProtoTcp, c.ttl, c.src, c.dst}, ip);
      pseudo_ = pseudo_sum_v6(ip + 8, kProtoTcp, 0);
    } else {
      emit_ipv4({tos, 0, 0, kIpv4DontFragment, c.ttl, kProtoTcp, c.src, c.dst}, ip);
      store_be16(ip + 10, 0);
      // Length, ID and ECN are zero in the template; emit() adds them.
      partial_ = ipv4_header_sum(ip, kIpv4Header);
      pseudo_ = pseudo_sum_v4(ip + 12, kProtoTcp, 0);
    }
    size_ = static_cast<std::uint8_t>(l3 + (v6_ ? kIpv6Header : kIpv4Header));
  }

  // The number of bytes before the TCP header; 0 if default-constructed.
  std::size_t size() const { return size_; }
  bool v6() const { return v6_; }
  MacAddress dst_mac() const { return MacAddress::from_bytes(bytes_.data()); }
  // The next hop has a new MAC; everything else stays the same.
  void set_dst_mac(const MacAddress& mac) { std::memcpy(bytes_.data(), mac.bytes.data(), 6); }

  // `dscp`: 0..63.
  void set_dscp(std::uint8_t dscp) {
    const auto tos = static_cast<std::uint8_t>(dscp << 2);
    std::uint8_t* ip = bytes_.data() + kEthernetHeader + (vlan_ ? kVlanTag : 0);
    if (v6_) {
      ip[0] = static_cast<std::uint8_t>(0x60 | tos >> 4);
      ip[1] = static_cast<std::uint8_t>((ip[1] & 0x0f) | (tos & 0x0f) << 4);
    } else {
      ip[1] = tos;
      partial_ = ipv4_header_sum(ip, kIpv4Header);
    }
  }

  // Writes size() bytes at `dst` for a segment of `tcp_len` bytes (TCP header included; tcp_len +
  // IP header <= 65535). Returns size(). `ip_id` may have any value, because DF is set (RFC 6864).
  // `ecn` is the two-bit field.
  std::size_t emit(std::uint8_t* dst, std::uint32_t tcp_len, std::uint16_t ip_id,
                   std::uint8_t ecn) const {
    // Constant lengths let the compiler inline the copies.
    std::uint8_t* ip = dst + kEthernetHeader;
    const std::uint8_t* from = bytes_.data();
    std::memcpy(dst, from, kEthernetHeader);
    from += kEthernetHeader;
    if (vlan_) {
      std::memcpy(ip, from, kVlanTag);
      ip += kVlanTag;
      from += kVlanTag;
    }
    if (v6_) {
      std::memcpy(ip, from, kIpv6Header);
      ip[1] = static_cast<std::uint8_t>(ip[1] | ecn << 4);
      store_be16(ip + 4, static_cast<std::uint16_t>(tcp_len));
    } else {
      std::memcpy(ip, from, kIpv4Header);
      const auto total = static_cast<std::uint16_t>(tcp_len + kIpv4Header);
      ip[1] = static_cast<std::uint8_t>(ip[1] | ecn);
      store_be16(ip + 2, total);
      store_be16(ip + 4, ip_id);
      store_be16(ip + 10, inet_checksum(std::uint64_t{partial_} + total + ip_id + ecn));
    }
    return size_;
  }

  // Unfolded pseudo-header sum for a segment of `tcp_len` bytes.
  std::uint32_t pseudo_sum(std::uint32_t tcp_len) const { return pseudo_ + tcp_len; }

 private:
  std::array<std::uint8_t, kHeaderTemplateMax> bytes_{};
  std::uint8_t size_ = 0;
  bool vlan_ = false, v6_ = false;
  std::uint32_t partial_ = 0, pseudo_ = 0;
};

}  // namespace urnic::net
