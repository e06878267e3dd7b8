#include "tcp/datagram_queue.h"

#include <algorithm>
#include <utility>

#include "base/inet_checksum.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::tcp {
namespace {

// Replies to unknown peers wait until the driver drains them, up to this many.
// bound: replies of a TCP stack to unknown peers that the program has not fetched; beyond: no
// reply; test: StackTest.UnfetchedRepliesToUnknownPeersAreBounded
constexpr std::size_t kMostQueuedReplies = 4096;
constexpr std::size_t kMostSpare = 256;

}  // namespace

std::uint32_t pseudo_sum(const IpAddress& src, const IpAddress& dst) {
  std::uint8_t both[32];
  const ByteView s = src.bytes(), d = dst.bytes();
  std::copy(s.begin(), s.end(), both);
  std::copy(d.begin(), d.end(), both + s.size());
  return dst.is_v6() ? net::pseudo_sum_v6(both, net::kProtoTcp, 0)
                     : net::pseudo_sum_v4(both, net::kProtoTcp, 0);
}

std::size_t ip_header(const IpAddress& dst) {
  return dst.is_v6() ? net::kIpv6Header : net::kIpv4Header;
}

void DatagramQueue::set_sink(Sink sink, void* context) {
  sink_ = sink;
  sink_context_ = context;
}

DatagramQueue::Bytes DatagramQueue::make(std::size_t size) {
  Bytes bytes;
  if (!spare_.empty()) {
    bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  bytes.resize(size);
  return bytes;
}

void DatagramQueue::send(const IpAddress& src, const IpAddress& dst, std::uint8_t tos,
                         std::uint16_t id, Bytes datagram, Instant now) {
  const std::size_t size = datagram.size();
  if (dst.is_v6()) {
    net::Ipv6Header h;
    h.traffic_class = tos;
    h.payload_len = static_cast<std::uint16_t>(size - net::kIpv6Header);
    h.next_header = net::kProtoTcp;
    h.hop_limit = ttl_;
    h.src = src;
    h.dst = dst;
    net::emit_ipv6(h, datagram.data());
  } else {
    net::Ipv4Header h;
    h.tos = tos;
    h.total_len = static_cast<std::uint16_t>(size);
    h.id = id;  // RFC 6864 4: never fragmented
    h.ttl = ttl_;
    h.protocol = net::kProtoTcp;
    h.src = src;
    h.dst = dst;
    net::emit_ipv4(h, datagram.data());
  }
  ++sent_;
  output_.push_back({now, std::move(datagram)});
}

bool DatagramQueue::reply(const net::Classified& to, const Segment& segment, Instant now) {
  if (output_.size() >= kMostQueuedReplies) return false;
  std::uint8_t header[kHeaderMax];
  const std::size_t n = emit_header(segment, header);
  const std::uint64_t sum = std::uint64_t{pseudo_sum(to.dst, to.src)} + n + inet_sum({header, n});
  store_be16(header + 16, inet_checksum(sum));
  const std::size_t ip = ip_header(to.src);
  Bytes bytes = make(ip + n);
  std::copy(header, header + n, bytes.begin() + static_cast<std::ptrdiff_t>(ip));
  send(to.dst, to.src, 0, 0, std::move(bytes), now);
  return true;
}

bool DatagramQueue::next(Datagram* out) {
  if (output_.empty()) return false;
  if (current_.capacity() != 0 && spare_.size() < kMostSpare) spare_.push_back(std::move(current_));
  out->send_time = output_.front().send_time;
  current_ = std::move(output_.front().bytes);
  output_.pop_front();
  out->bytes = current_;
  return true;
}

bool DatagramQueue::deliver() {
  if (sink_ == nullptr || output_.empty()) return false;
  Packet p = std::move(output_.front());
  output_.pop_front();
  sink_(sink_context_, p.bytes, p.send_time);
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(p.bytes));
  return true;
}

}  // namespace urnic::tcp
