#include "tests/fuzz/forge.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/inet_checksum.h"
#include "mpa/fpdu.h"
#include "net/arp.h"
#include "net/header_template.h"
#include "net/icmp.h"

namespace urnic::fuzz {
namespace {

using fault::TcpView;

// Sets lengths and checksums of a frame whose payload is everything after the headers.
Bytes finished(Bytes bytes, const TcpView& v) {
  fault::Frame f{std::move(bytes), URNIC_CSUM_UNKNOWN};
  fault::finish_tcp_frame(f, v, static_cast<std::uint32_t>(f.bytes.size() - v.payload_offset()));
  return std::move(f.bytes);
}

// Sets the correct CRC for the current content of every whole FPDU in the payload.
void repair_crcs(std::uint8_t* p, std::size_t n) {
  while (n >= 2) {
    const std::uint32_t size = mpa::fpdu_size(load_be16(p));
    if (size > n) return;
    store_le32(p + size - mpa::kCrcField, crc32c({p, size - mpa::kCrcField}));
    p += size;
    n -= size;
  }
}

void change_header(Bytes& b, const TcpView& v, Input& in) {
  std::uint8_t* t = b.data() + v.net.l4_offset;
  switch (in.below(6)) {
    case 0:
      store_be32(t + 4, load_be32(t + 4) + in.u16() - 0x8000u);
      break;
    case 1:
      store_be32(t + 8, load_be32(t + 8) + in.u16() - 0x8000u);
      break;
    case 2:
      t[13] = in.u8();
      break;
    case 3:
      store_be16(t + 14, in.often(128) ? std::uint16_t{0} : in.u16());
      break;
    case 4:
      t[12] = in.u8();
      break;
    default:
      if (v.header_len > 20) t[20 + in.below(v.header_len - 20)] = in.u8();
      break;
  }
}

}  // namespace

Bytes mutate(Bytes frame, Input& in) {
  const auto v = fault::parse_tcp_frame(frame, static_cast<std::uint32_t>(frame.size()));
  if (!v) return frame;
  const std::uint32_t at = v->payload_offset();
  frame.resize(at + v->payload_len);
  std::uint8_t* payload = frame.data() + at;
  switch (in.below(8)) {
    case 0:
    case 1:
      change_header(frame, *v, in);
      break;
    case 2:  // the TCP checksum detects it
      frame[in.below(static_cast<std::uint32_t>(frame.size()))] ^=
          static_cast<std::uint8_t>(1u << in.below(8));
      return frame;
    case 3:  // only the CRC detects it
      if (v->payload_len != 0) payload[in.below(v->payload_len)] ^= in.u8();
      break;
    case 4:  // headers of start-up frames and FPDUs: only the protocol can detect it
    case 5:
      for (unsigned n = 1 + in.below(3); v->payload_len != 0 && n > 0; --n) {
        payload[in.below(std::min(v->payload_len, 48u))] = in.u8();
      }
      repair_crcs(payload, v->payload_len);
      break;
    case 6:  // shorter
      if (v->payload_len != 0) frame.resize(at + in.below(v->payload_len));
      break;
    default:  // longer
      for (unsigned n = in.below(64); n > 0; --n) frame.push_back(in.u8());
      break;
  }
  return finished(std::move(frame), *v);
}

std::vector<Bytes> cut(const Bytes& frame, Input& in) {
  const fault::Frame f{frame, URNIC_CSUM_UNKNOWN};
  const auto v = fault::parse_tcp_frame(f);
  if (!v || v->payload_len < 2) return {frame};
  const std::uint32_t first = 1 + in.below(v->payload_len - 1);
  return {fault::piece_of(f, *v, 0, first).bytes,
          fault::piece_of(f, *v, first, v->payload_len - first).bytes};
}

Bytes forge(const Bytes& seen, bool back, Input& in) {
  const auto v = fault::parse_tcp_frame(seen, static_cast<std::uint32_t>(seen.size()));
  if (!v) return {};
  const std::uint32_t next =
      v->seq + v->payload_len + (v->has(tcp::kSyn) || v->has(tcp::kFin) ? 1 : 0);
  tcp::Segment s;
  s.src_port = back ? v->dst_port : v->src_port;
  s.dst_port = back ? v->src_port : v->dst_port;
  s.seq = tcp::Seq(back ? v->ack : next);
  s.ack = tcp::Seq(back ? next : v->ack);
  s.window = 4000;
  s.flags = tcp::kAck;
  Bytes payload;
  switch (in.below(10)) {
    case 0:
    case 1:
      s.flags = in.often(128) ? tcp::kRst : tcp::kRst | tcp::kAck;
      break;
    case 2:
      s.flags |= tcp::kFin;
      break;
    case 3:
      s.flags = tcp::kSyn;
      s.opts.has_mss = true;
      s.opts.mss = in.u16();
      break;
    case 4:
      s.flags |= tcp::kSyn;
      break;
    case 5:  // the payload of a segment that was seen
      payload.assign(seen.begin() + v->payload_offset(),
                     seen.begin() + v->payload_offset() + v->payload_len);
      break;
    case 6:
      payload = in.bytes(1 + in.below(100));
      break;
    case 7:  // a rejecting start-up frame, in some cases followed by FIN
      payload.assign(
          {'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'p', ' ', 'F', 'r', 'a', 'm', 'e'});
      payload.push_back(in.u8());
      payload.push_back(static_cast<std::uint8_t>(1 + in.below(2)));
      payload.insert(payload.end(), {0, static_cast<std::uint8_t>(in.below(5) & 4u)});
      if (payload.back() == 4) payload.insert(payload.end(), {in.u8(), in.u8(), in.u8(), in.u8()});
      if (in.often(128)) s.flags |= tcp::kFin;
      break;
    case 8:
      s.window = 0;
      break;
    default:
      s.opts.sack_count = static_cast<std::uint8_t>(1 + in.below(3));
      for (auto& block : s.opts.sack) {
        block.begin = tcp::Seq(s.ack.value() + in.below(8000));
        block.end = tcp::Seq(block.begin.value() + in.below(4000));
      }
      break;
  }
  if (in.often(64)) s.seq = tcp::Seq(s.seq.value() + in.below(4096) - 2048);
  if (in.often(64)) s.ack = tcp::Seq(s.ack.value() + in.below(4096) - 2048);

  net::HeaderTemplateConfig c;
  c.src_mac = back ? v->net.dst_mac : v->net.src_mac;
  c.dst_mac = back ? v->net.src_mac : v->net.dst_mac;
  c.src = back ? v->net.dst : v->net.src;
  c.dst = back ? v->net.src : v->net.dst;
  const net::HeaderTemplate ip(c);
  Bytes out(ip.size() + tcp::kHeaderMax + payload.size());
  const std::size_t header = tcp::emit_header(s, out.data() + ip.size());
  std::copy(payload.begin(), payload.end(),
            out.begin() + static_cast<std::ptrdiff_t>(ip.size() + header));
  out.resize(ip.size() + header + payload.size());
  ip.emit(out.data(), static_cast<std::uint32_t>(header + payload.size()), 1, 0);
  const auto made = fault::parse_tcp_frame(out, static_cast<std::uint32_t>(out.size()));
  return made ? finished(std::move(out), *made) : Bytes{};
}

namespace {

// Ethernet and IPv4 headers for `l4_len` bytes of `protocol`.
Bytes ipv4_frame(const MacAddress& from_mac, const MacAddress& to_mac, const IpAddress& from,
                 const IpAddress& to, std::uint8_t protocol, std::size_t l4_len) {
  Bytes out(net::kEthernetHeader + net::kIpv4Header + l4_len);
  net::emit_ethernet({to_mac, from_mac, 0, net::kEtherTypeIpv4}, out.data());
  net::Ipv4Header h;
  h.total_len = static_cast<std::uint16_t>(net::kIpv4Header + l4_len);
  h.protocol = protocol;
  h.ttl = 64;
  h.src = from;
  h.dst = to;
  net::emit_ipv4(h, out.data() + net::kEthernetHeader);
  return out;
}

}  // namespace

Bytes forge_icmp(const Bytes& seen, Input& in) {
  const auto v = fault::parse_tcp_frame(seen, static_cast<std::uint32_t>(seen.size()));
  if (!v || v->net.v6) return {};
  const std::size_t quoted =
      std::min<std::size_t>(seen.size() - v->net.l3_offset, 28u + in.below(40));
  Bytes out = ipv4_frame(v->net.dst_mac, v->net.src_mac, v->net.dst, v->net.src, 1,
                         net::kIcmpHeader + quoted);
  const std::size_t at = net::kEthernetHeader + net::kIpv4Header;
  constexpr std::uint8_t kTypes[] = {net::kIcmpUnreachable, net::kIcmpUnreachable,
                                     net::kIcmpTimeExceeded, net::kIcmpParameterProblem};
  out[at] = kTypes[in.below(4)];
  out[at + 1] = in.often(100) ? std::uint8_t{4} : static_cast<std::uint8_t>(in.below(16));
  store_be16(&out[at + 6],
             in.often(128) ? static_cast<std::uint16_t>(60 + in.below(1500)) : in.u16());
  std::copy_n(seen.begin() + v->net.l3_offset, quoted,
              out.begin() + static_cast<std::ptrdiff_t>(at + net::kIcmpHeader));
  net::set_icmp_checksum({out.data() + at, out.size() - at}, 0);
  return out;
}

Bytes stranger_syn(const MacAddress& to_mac, const IpAddress& to, std::uint16_t port, Input& in) {
  const auto n = static_cast<std::uint8_t>(3 + in.below(200));
  const IpAddress from =
      in.often(128) ? IpAddress::v4(10, 0, 0, n) : IpAddress::v4(198, 51, 100, n);
  tcp::Segment s;
  s.flags = tcp::kSyn;
  s.src_port = static_cast<std::uint16_t>(1024 + in.below(64));
  s.dst_port = port;
  s.seq = tcp::Seq(in.u16());
  s.window = 5000;
  s.opts.has_mss = true;
  s.opts.mss = 1460;
  std::uint8_t header[tcp::kHeaderMax];
  const std::size_t len = tcp::emit_header(s, header);
  Bytes out = ipv4_frame(MacAddress{{2, 9, 9, 9, 9, n}}, to_mac, from, to, net::kProtoTcp, len);
  std::copy_n(header, len, out.begin() + net::kEthernetHeader + net::kIpv4Header);
  const auto made = fault::parse_tcp_frame(out, static_cast<std::uint32_t>(out.size()));
  return made ? finished(std::move(out), *made) : Bytes{};
}

Bytes stranger_arp(const Bytes& request) {
  if (request.size() < net::kEthernetHeader + net::kArpPacket) return {};
  const auto asked = net::parse_arp(ByteView(request).subspan(net::kEthernetHeader));
  if (!asked || asked->operation != net::kArpRequest) return {};
  const std::uint32_t host = asked->target_ip.v4_value() & 0xff;
  if (host < 3) return {};
  const MacAddress mac{{2, 9, 9, 9, 9, static_cast<std::uint8_t>(host)}};
  Bytes out(net::kEthernetHeader + net::kArpPacket);
  net::emit_ethernet({asked->sender_mac, mac, 0, net::kEtherTypeArp}, out.data());
  net::emit_arp({net::kArpReply, mac, asked->target_ip, asked->sender_mac, asked->sender_ip},
                out.data() + net::kEthernetHeader);
  return out;
}

}  // namespace urnic::fuzz
