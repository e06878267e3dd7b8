#include "fault/tcp_frame.h"

#include <algorithm>

#include "base/inet_checksum.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::fault {
namespace {

constexpr std::size_t kSeqField = 4;
constexpr std::size_t kFlagsField = 13;
constexpr std::size_t kChecksumField = 16;
constexpr std::uint32_t kIpMax = 65535;

std::uint32_t pseudo_sum(const Frame& f, const TcpView& v, std::uint32_t tcp_len) {
  const std::uint8_t* ip = f.bytes.data() + v.net.l3_offset;
  return v.net.v6 ? net::pseudo_sum_v6(ip + 8, net::kProtoTcp, tcp_len)
                  : net::pseudo_sum_v4(ip + 12, net::kProtoTcp, tcp_len);
}

// The byte with the congestion marks, which must survive cutting and joining.
std::uint8_t& tos_byte(Frame& f, const TcpView& v) {
  return f.bytes[v.net.l3_offset + std::size_t{1}];
}
void set_ce(Frame& f, const TcpView& v) {
  std::uint8_t& byte = tos_byte(f, v);
  byte = static_cast<std::uint8_t>(byte | (v.net.v6 ? 0x30 : 0x03));
}

}  // namespace

std::optional<TcpView> parse_tcp_frame(ByteView head, std::uint32_t total_len) {
  return view_tcp(net::classify(head, total_len), head);
}

std::optional<TcpView> view_tcp(const net::Classified& c, ByteView head) {
  TcpView v;
  v.net = c;
  if (v.net.kind != net::FrameKind::Tcp) return std::nullopt;
  const std::uint8_t* t = head.data() + v.net.l4_offset;
  v.src_port = load_be16(t);
  v.dst_port = load_be16(t + 2);
  v.header_len = std::uint32_t{t[12]} / 16 * 4;
  if (v.header_len < tcp::kHeaderMin || v.header_len > v.net.l4_len) return std::nullopt;
  v.payload_len = v.net.l4_len - v.header_len;
  v.seq = load_be32(t + kSeqField);
  v.ack = load_be32(t + 8);
  v.flags = t[kFlagsField];
  return v;
}

bool tcp_checksum_ok(const Frame& f, const TcpView& v) {
  if (f.csum != URNIC_CSUM_UNKNOWN) return true;
  const ByteView l4 = ByteView(f.bytes).subspan(v.net.l4_offset, v.net.l4_len);
  return inet_fold(std::uint64_t{v.net.pseudo_sum} + inet_sum(l4)) == 0xffff;
}

void finish_tcp_frame(Frame& f, const TcpView& v, std::uint32_t payload_len) {
  const std::uint32_t tcp_len = v.header_len + payload_len;
  f.bytes.resize(v.net.l4_offset + tcp_len);
  std::uint8_t* ip = f.bytes.data() + v.net.l3_offset;
  const std::uint32_t l3_len = v.net.l4_offset - v.net.l3_offset + tcp_len;
  if (v.net.v6) {
    store_be16(ip + 4, static_cast<std::uint16_t>(l3_len - net::kIpv6Header));
  } else {
    store_be16(ip + 2, static_cast<std::uint16_t>(l3_len));
    store_be16(ip + 10, 0);
    const std::size_t header = v.net.l4_offset - std::size_t{v.net.l3_offset};
    store_be16(ip + 10, inet_checksum(net::ipv4_header_sum(ip, header)));
  }
  std::uint8_t* t = f.bytes.data() + v.net.l4_offset;
  store_be16(t + kChecksumField, 0);
  const std::uint64_t sum = inet_sum({t, tcp_len});
  store_be16(t + kChecksumField, inet_checksum(sum + pseudo_sum(f, v, tcp_len)));
  f.csum = URNIC_CSUM_UNKNOWN;
}

void patch_tcp_checksum(Frame& f, const TcpView& v, std::uint32_t at, ByteView was) {
  if (f.csum == URNIC_CSUM_PARTIAL) return;  // the field does not cover the payload
  mend_checksum(f, v.net.l4_offset, kChecksumField, at, was);
}

void mend_checksum(Frame& f, std::uint32_t l4, std::uint32_t field, std::uint32_t at,
                   ByteView was) {
  // A byte at an odd offset is the low half of its 16-bit word.
  const auto word_sum = [&](const std::uint8_t* p, std::size_t n) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool high = (at + i - l4) % 2 == 0;
      sum += high ? std::uint32_t{p[i]} << 8 : std::uint32_t{p[i]};
    }
    return inet_fold(sum);
  };
  const std::uint16_t before = word_sum(was.data(), was.size());
  const std::uint16_t after = word_sum(f.bytes.data() + at, was.size());
  std::uint8_t* const to = f.bytes.data() + l4 + field;
  // RFC 1624, equation 3.
  store_be16(to, inet_checksum(std::uint64_t{static_cast<std::uint16_t>(~load_be16(to))} +
                               static_cast<std::uint16_t>(~before) + after));
}

Frame piece_of(const Frame& f, const TcpView& v, std::uint32_t from, std::uint32_t len) {
  Frame out;
  const auto head = f.bytes.begin() + v.overhead();
  out.bytes.reserve(v.overhead() + len);
  out.bytes.assign(f.bytes.begin(), head);
  out.bytes.insert(out.bytes.end(), head + from, head + from + len);
  std::uint8_t* t = out.bytes.data() + v.net.l4_offset;
  store_be32(t + kSeqField, v.seq + from);
  const bool first = from == 0, last = from + len == v.payload_len;
  if (!last) t[kFlagsField] = static_cast<std::uint8_t>(t[kFlagsField] & ~(tcp::kFin | tcp::kPsh));
  if (!first) t[kFlagsField] = static_cast<std::uint8_t>(t[kFlagsField] & ~tcp::kCwr);
  finish_tcp_frame(out, v, len);
  return out;
}

std::vector<Frame> split(const Frame& f, const TcpView& v, std::uint32_t max_payload) {
  std::vector<Frame> out;
  const std::uint32_t step = std::max(max_payload, 1u);
  for (std::uint32_t from = 0; from < v.payload_len; from += std::min(step, v.payload_len - from)) {
    out.push_back(piece_of(f, v, from, std::min(step, v.payload_len - from)));
  }
  return out;
}

Frame join(const Frame& a, const TcpView& va, const Frame& b, const TcpView& vb) {
  Frame out;
  const auto data_a = a.bytes.begin() + va.overhead(), data_b = b.bytes.begin() + vb.overhead();
  out.bytes.reserve(vb.overhead() + va.payload_len + vb.payload_len);
  out.bytes.assign(b.bytes.begin(), data_b);
  out.bytes.insert(out.bytes.end(), data_a, data_a + va.payload_len);
  out.bytes.insert(out.bytes.end(), data_b, data_b + vb.payload_len);
  std::uint8_t* t = out.bytes.data() + vb.net.l4_offset;
  store_be32(t + kSeqField, va.seq);
  t[kFlagsField] = static_cast<std::uint8_t>(t[kFlagsField] | (va.flags & (tcp::kPsh | tcp::kCwr)));
  if (va.net.ecn == 3) set_ce(out, vb);
  finish_tcp_frame(out, vb, va.payload_len + vb.payload_len);
  return out;
}

bool can_join(const TcpView& a, const TcpView& b) {
  if (!plain_data(a) || !plain_data(b) || a.has(tcp::kFin)) return false;
  if (b.seq != a.seq + a.payload_len || a.net.v6 != b.net.v6 || a.net.vlan != b.net.vlan) {
    return false;
  }
  if (a.src() != b.src() || a.dst() != b.dst()) return false;
  const std::uint32_t l3 = b.overhead() - b.net.l3_offset;
  return l3 + a.payload_len + b.payload_len <= kIpMax;
}

}  // namespace urnic::fault
