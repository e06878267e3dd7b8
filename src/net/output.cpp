#include "net/output.h"

#include "net/addressing.h"
#include "net/arp.h"
#include "net/ethernet.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::net {

MutBytes Output::frame(const MacAddress& to, std::uint16_t ether_type, std::size_t l3_len) {
  if (!up_) return {};
  const EthernetHeader eth{to, mac_, vlan_, ether_type};
  const MutBytes room = queue_.append(eth.size() + l3_len);
  if (room.empty()) {
    ++counters_->output_full;
    return {};
  }
  emit_ethernet(eth, room.data());
  return room.subspan(eth.size());
}

MutBytes Output::datagram(const MacAddress& to, const IpAddress& src, const IpAddress& dst,
                          std::uint8_t protocol, std::uint8_t ttl, std::size_t l4_len) {
  const std::size_t header = dst.is_v6() ? kIpv6Header : kIpv4Header;
  if (header + l4_len > mtu_) return {};
  const MutBytes l3 = frame(to, dst.is_v6() ? kEtherTypeIpv6 : kEtherTypeIpv4, header + l4_len);
  if (l3.empty()) return {};
  if (dst.is_v6()) {
    emit_ipv6({0, 0, static_cast<std::uint16_t>(l4_len), protocol, ttl, src, dst}, l3.data());
  } else {
    emit_ipv4({0, static_cast<std::uint16_t>(header + l4_len), 0, kIpv4DontFragment, ttl, protocol,
               src, dst},
              l3.data());
  }
  return l3.subspan(header);
}

void Output::arp(std::uint16_t operation, const IpAddress& sender, const MacAddress& to,
                 const MacAddress& target_mac, const IpAddress& target) {
  const MutBytes l3 = frame(to, kEtherTypeArp, kArpPacket);
  if (l3.empty()) return;
  emit_arp({operation, mac_, sender, target_mac, target}, l3.data());
  ++counters_->arp.tx;
}

void Output::nd(const NdMessage& m, const IpAddress& src, const IpAddress& dst,
                const MacAddress& to) {
  const std::size_t len = m.link_layer ? kNdWithOption : kNdFixed;
  const MutBytes out = datagram(to, src, dst, kProtoIcmpv6, kNdHopLimit, len);
  if (out.empty()) return;
  emit_nd(m, src, dst, out.data());
  ++counters_->nd.tx;
}

// Sends an unsolicited advertisement to all nodes (RFC 4861, 7.2.6).
void Output::announce_nd(const IpAddress& own) {
  NdMessage m;
  m.type = kIcmp6NeighbourAdvertisement;
  m.override_entry = true;
  m.target = own;
  m.link_layer = mac_;
  nd(m, own, all_nodes(), multicast_mac(all_nodes()));
}

void Output::mld_report(const OwnAddresses& own) {
  std::vector<IpAddress> groups = own.groups();
  const std::size_t room = (mtu_ - kIpv6Header - mld_report_size(0)) / 20;
  if (groups.size() > room) groups.resize(room);
  if (groups.empty()) return;
  // RFC 3590: the source is unspecified while there is no usable link-local address.
  const IpAddress from = own.usable_link_local().value_or(IpAddress::any_v6());
  const IpAddress to = mld_routers();
  const MutBytes out =
      datagram(multicast_mac(to), from, to, kExtHopByHop, 1, mld_report_size(groups.size()));
  if (out.empty()) return;
  emit_mld_report(groups, from, out.data());
  ++counters_->nd.tx;
}

}  // namespace urnic::net
