#include "device/stream_capture.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/inet_checksum.h"
#include "net/header_template.h"

namespace urnic::device {
namespace {

// A read may return hundreds of kilobytes, and an FPDU may be larger than an IP packet.
constexpr std::size_t kMostPayload = 32768;
constexpr std::uint16_t kWindow = 65535;

// Made up as well: the lower address of a connection has the first.
constexpr MacAddress kMacs[] = {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}};

bool is_lower(const SocketAddress& a, const SocketAddress& b) {
  return a < b;
}

// After the SYN, which has the number 0.
tcp::Seq number_of(std::uint64_t bytes) {
  return tcp::Seq(static_cast<std::uint32_t>(bytes + 1));
}

}  // namespace

StreamCapture::StreamCapture(std::shared_ptr<fault::CaptureFile> file,
                             const fault::WireClock& clock)
    : file_(std::move(file)), clock_(clock), interface_(file_->add_interface("tcp")) {}

StreamCapture::Way StreamCapture::way_of(const kernel_tcp::Tapped& c, bool by_peer) {
  const tcp::Seq sent = number_of(c.sent), received = number_of(c.received);
  return by_peer ? Way{c.remote, c.local, received, sent, fault::Direction::Rx}
                 : Way{c.local, c.remote, sent, received, fault::Direction::Tx};
}

// The end that connects also sends first (MPA, RFC 5044 7.1).
void StreamCapture::begin(const kernel_tcp::Tapped& c, bool by_peer) {
  if (c.sent != 0 || c.received != 0) return;
  Way there = way_of(c, by_peer), back = way_of(c, !by_peer);
  there.seq = back.seq = tcp::Seq(0);
  add(there, tcp::kSyn, {});
  add(back, tcp::kSyn | tcp::kAck, {});
  add(way_of(c, by_peer), tcp::kAck, {});
}

void StreamCapture::sent(const kernel_tcp::Tapped& c, std::span<const iovec> pieces,
                         std::span<const std::uint32_t> records, std::size_t taken) {
  begin(c, false);
  Way way = way_of(c, false);
  std::size_t piece = 0, used = 0;  // bytes used of that piece
  for (const std::uint32_t record : records) {
    const std::size_t length = std::min<std::size_t>(record, taken);
    taken -= length;
    for (record_.clear(); record_.size() < length;) {
      const auto* const bytes = static_cast<const std::uint8_t*>(pieces[piece].iov_base);
      const std::size_t n = std::min(pieces[piece].iov_len - used, length - record_.size());
      record_.insert(record_.end(), bytes + used, bytes + used + n);
      used += n;
      if (used == pieces[piece].iov_len) ++piece, used = 0;
    }
    add_bytes(way, record_);
    way.seq = way.seq + static_cast<std::uint32_t>(length);
    if (taken == 0) return;
  }
}

void StreamCapture::received(const kernel_tcp::Tapped& c, ByteView bytes) {
  begin(c, true);
  add_bytes(way_of(c, true), bytes);
}

void StreamCapture::ended(const kernel_tcp::Tapped& c, End end, bool by_peer) {
  const std::uint16_t flag = end == End::Fin ? tcp::kFin : tcp::kRst;
  add(way_of(c, by_peer), flag | tcp::kAck, {});
}

void StreamCapture::add_bytes(const Way& way, ByteView bytes) {
  Way at = way;
  while (!bytes.empty()) {
    const ByteView part = bytes.first(std::min(bytes.size(), kMostPayload));
    bytes = bytes.subspan(part.size());
    add(at, bytes.empty() ? tcp::kAck | tcp::kPsh : tcp::kAck, part);
    at.seq = at.seq + static_cast<std::uint32_t>(part.size());
  }
}

void StreamCapture::add(const Way& way, std::uint16_t flags, ByteView payload) {
  tcp::Segment segment;
  segment.src_port = way.from.port;
  segment.dst_port = way.to.port;
  segment.seq = way.seq;
  if ((flags & tcp::kAck) != 0) segment.ack = way.ack;
  segment.flags = flags;
  segment.window = kWindow;
  const bool lower = is_lower(way.from, way.to);
  const net::HeaderTemplate header({.src_mac = kMacs[lower ? 0 : 1],
                                    .dst_mac = kMacs[lower ? 1 : 0],
                                    .src = way.from.ip,
                                    .dst = way.to.ip});
  std::array<std::uint8_t, net::kHeaderTemplateMax + tcp::kHeaderMax> head;
  std::uint8_t* const tcp = head.data() + header.size();
  const std::size_t tcp_header = tcp::emit_header(segment, tcp);
  const auto length = static_cast<std::uint32_t>(tcp_header + payload.size());
  header.emit(head.data(), length, 0, 0);
  const std::uint64_t sum =
      std::uint64_t{header.pseudo_sum(length)} + inet_sum({tcp, tcp_header}) + inet_sum(payload);
  store_be16(tcp + 16, inet_checksum(sum));
  file_->add(interface_, way.direction, clock_.now_ns(clock_.context),
             {head.data(), header.size() + tcp_header}, payload);
}

}  // namespace urnic::device
