#include "roce/frame.h"

#include <cstring>

#include "base/inet_checksum.h"
#include "ib/icrc.h"
#include "ib/packet.h"
#include "net/ethernet.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::roce {
namespace {

constexpr std::size_t kFrontBytes = 8;  // of a BTH, before AckReq and PSN

}  // namespace

bool is_ours(const net::Classified& c, ByteView head) {
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
    ipv4_sum_ = net::ipv4_header_sum(p, net::kIpv4Header) - load_be16(p + 10);
    p += net::kIpv4Header;
  }
  store_be16(p, c.fixed_source_port != 0 ? c.fixed_source_port : av.source_port);
  store_be16(p + 2, ib::kUdpPort);
  size_ = static_cast<std::uint8_t>(p + kUdpHeader - bytes_.data());
}

void FrameHeaders::write_front(std::uint8_t* dst, std::size_t packet,
                               std::uint16_t identification) const {
  std::memcpy(dst, bytes_.data(), size_);
  std::uint8_t* const ip = dst + ip_;
  const auto length = static_cast<std::uint16_t>(kUdpHeader + packet);
  store_be16(dst + size_ - kUdpHeader + 4, length);
  if (v6_) {
    store_be16(ip + 4, length);
    return;
  }
  const auto total = static_cast<std::uint16_t>(net::kIpv4Header + length);
  store_be16(ip + 2, total);
  store_be16(ip + 4, identification);
  store_be16(ip + 10, inet_checksum(std::uint64_t{ipv4_sum_} + total + identification));
}

std::size_t FrameHeaders::finish(std::uint8_t* dst, std::size_t packet,
                                 std::uint16_t identification) const {
  write_front(dst, packet, identification);
  ib::seal({dst + ip_, static_cast<std::size_t>(size_ - ip_)}, {dst + size_, packet});
  return size_ + packet;
}

ib::RunningIcrc FrameHeaders::front(const std::uint8_t* frame, const ib::PacketHeader& h,
                                    std::uint32_t payload) {
  Front& f = fronts_[h.bth.opcode.byte & 1];
  const std::uint64_t bth = ib::bth_front(h, payload);
  if (f.bth == bth && f.payload == payload) return ib::RunningIcrc(f.icrc);
  const ib::RunningIcrc icrc({frame + ip_, frame + size_ + kFrontBytes}, v6_);
  f = {bth, payload, icrc.state()};
  return icrc;
}

FrameRun FrameHeaders::run_of(const ib::PacketHeader& header, std::uint32_t payload) const {
  FrameRun run;
  std::uint8_t* const p = run.bytes_.data();
  write_front(p, ib::packet_bytes(header.bth.opcode, payload), 0);
  run.headers_ = size_ + ib::emit_headers(header, payload, p + size_);
  run.payload_ = payload;
  run.icrc_ = ib::RunningIcrc({p + ip_, p + size_ + kFrontBytes}, v6_).state();
  return run;
}

std::size_t FrameHeaders::write(std::uint8_t* dst, const ib::PacketHeader& header,
                                std::span<const ByteView> pieces, std::uint32_t payload) {
  const std::size_t packet = ib::packet_bytes(header.bth.opcode, payload);
  write_front(dst, packet, 0);
  std::uint8_t* to = dst + size_ + ib::emit_headers(header, payload, dst + size_);
  ib::RunningIcrc icrc = front(dst, header, payload);
  icrc.words({dst + size_ + kFrontBytes, to});
  for (const ByteView piece : pieces) {
    if (!guarded(piece.data(), piece.size(), [&] { icrc.copy(to, piece); })) return 0;
    to += piece.size();
  }
  const std::uint8_t pad = ib::pad_of(payload);
  std::memset(to, 0, pad);
  icrc.cover({to, pad});
  store_le32(to + pad, icrc.value());
  return size_ + packet;
}

}  // namespace urnic::roce
