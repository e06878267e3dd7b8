#include "port/super_segment.h"

#include <algorithm>
#include <cstring>

#include "base/inet_checksum.h"

namespace urnic::port {
namespace {

constexpr std::size_t kSequence = 4, kFlags = 13, kChecksum = 16;  // in the TCP header
constexpr std::uint32_t kMaxPacket = 65535;                        // IP total length

// True if the checksum of the frame is right. Joining replaces it with the kernel's, so a wrong
// checksum (for example an injected fault) must be sent unchanged and not be repaired.
bool checksum_right(const urnic_frame& f, const TcpFrame& shape) {
  const ByteView first{f.data[0], f.len[0]};
  const std::uint32_t tcp_length = shape.end - shape.tcp;
  std::uint64_t sum = pseudo_sum(first, shape, tcp_length);
  const std::uint32_t in_first = std::min<std::uint32_t>(shape.end, f.len[0]);
  sum += inet_sum(first.subspan(shape.tcp, in_first - shape.tcp));
  if (shape.end > in_first) {
    std::uint64_t rest = inet_sum({f.data[1], shape.end - in_first});
    // If the second span starts at an odd offset, its bytes are swapped within the words.
    if ((in_first - shape.tcp) % 2 != 0) rest = __builtin_bswap16(inet_fold(rest));
    sum += rest;
  }
  return inet_fold(sum) == 0xffff;
}

}  // namespace

// ---- receive ----

bool Splitter::start(MutBytes bytes, std::uint16_t segment_size) {
  offset_ = payload_length_ = 0;
  if (segment_size == 0) return false;
  const auto shape = parse_tcp_frame({bytes.data(), std::min(bytes.size(), kMaxHeaders)},
                                     static_cast<std::uint32_t>(bytes.size()), false);
  if (!shape) return false;
  bytes_ = bytes;
  shape_ = *shape;
  segment_size_ = segment_size;
  payload_length_ = shape->payload_length();
  first_sequence_ = load_be32(&bytes[shape->tcp + kSequence]);
  first_id_ = shape->ipv6 ? 0 : load_be16(&bytes[shape->ip + 4u]);
  return payload_length_ != 0;
}

void Splitter::next(std::uint8_t* headers, urnic_frame* f) {
  const std::uint32_t length = std::min(segment_size_, payload_length_ - offset_);
  const bool first = offset_ == 0;
  const bool last = offset_ + length == payload_length_;
  std::memcpy(headers, bytes_.data(), shape_.payload);
  set_ip_length(headers, shape_, length,
                static_cast<std::uint16_t>(first_id_ + offset_ / segment_size_));
  std::uint8_t* tcp = headers + shape_.tcp;
  store_be32(tcp + kSequence, first_sequence_ + offset_);
  if (!last) tcp[kFlags] &= static_cast<std::uint8_t>(~(tcp_flag::kFin | tcp_flag::kPsh));
  if (!first) tcp[kFlags] &= static_cast<std::uint8_t>(~tcp_flag::kCwr);
  const std::uint32_t tcp_length = static_cast<std::uint32_t>(shape_.payload - shape_.tcp) + length;
  store_be16(tcp + kChecksum, inet_fold(pseudo_sum({headers, shape_.payload}, shape_, tcp_length)));
  *f = {};
  f->data[0] = headers;
  f->len[0] = shape_.payload;
  f->data[1] = bytes_.data() + shape_.payload + offset_;
  f->len[1] = length;
  f->csum = URNIC_CSUM_PARTIAL;
  offset_ += length;
}

// ---- transmit ----

bool Joiner::follows(ByteView head, const TcpFrame& shape) const {
  if (shape.ipv6 != shape_.ipv6 || shape.ip != shape_.ip || shape.tcp != shape_.tcp ||
      shape.payload != shape_.payload) {
    return false;
  }
  if (shape.payload_length() > segment_size_ ||
      payload_ + shape.payload_length() + (shape_.payload - shape_.ip) > kMaxPacket) {
    return false;
  }
  const std::uint8_t* a = head_.data();
  const std::uint8_t* b = head.data();
  const auto same = [&](std::size_t from, std::size_t to) {
    return std::memcmp(a + from, b + from, to - from) == 0;
  };
  const std::size_t ip = shape_.ip, tcp = shape_.tcp;
  if (!same(0, ip)) return false;
  if (shape_.ipv6) {
    if (!same(ip, ip + 4) || !same(ip + 6, tcp)) return false;
  } else {
    // All fields must match except length, identification and checksum. Without DF the
    // identification is significant.
    if (!same(ip, ip + 2) || !same(ip + 6, ip + 10) || !same(ip + 12, tcp)) return false;
    const bool dont_fragment = (b[ip + 6] & 0x40) != 0;
    if (!dont_fragment && load_be16(b + ip + 4) != next_id_) return false;
  }
  // Ports; acknowledgment; header length; window; options. The flags have been checked before.
  return same(tcp, tcp + 4) && same(tcp + 8, tcp + 13) && same(tcp + 14, tcp + 16) &&
         same(tcp + 18, shape_.payload) && load_be32(b + tcp + kSequence) == next_sequence_;
}

bool Joiner::add(const urnic_frame& f) {
  const ByteView head{f.data[0], f.len[0]};
  const auto shape = parse_tcp_frame(head, f.len[0] + f.len[1]);
  bool joinable = shape && shape->payload_length() != 0 && shape->payload <= kMaxHeaders &&
                  // The frame must end with the segment: the kernel takes the rest of the write as
                  // payload.
                  shape->end == f.len[0] + f.len[1];
  std::uint8_t flags = 0;
  if (joinable) {
    flags = head[shape->tcp + kFlags];
    constexpr std::uint8_t kMay = tcp_flag::kAck | tcp_flag::kPsh | tcp_flag::kFin;
    joinable = (flags & tcp_flag::kAck) != 0 && (flags & ~kMay) == 0;
  }
  if (count_ != 0) {
    if (!open_ || !joinable || !follows(head, *shape) || !checksum_right(f, *shape)) return false;
  } else {
    open_ = joinable && checksum_right(f, *shape);
    if (shape) shape_ = *shape;
    payload_ = 0;
    segment_size_ = joinable ? shape->payload_length() : 0;
    if (open_) std::memcpy(head_.data(), head.data(), shape->payload);
  }
  ++count_;
  if (!open_) return true;
  payload_ += shape->payload_length();
  next_sequence_ = load_be32(&head[shape->tcp + kSequence]) + shape->payload_length();
  if (!shape->ipv6) next_id_ = static_cast<std::uint16_t>(load_be16(&head[shape->ip + 4u]) + 1);
  last_flags_ = flags;
  // PSH and FIN belong to the last segment, and only the last segment may be short.
  open_ = flags == tcp_flag::kAck && shape->payload_length() == segment_size_;
  return true;
}

std::size_t Joiner::finish(std::uint8_t* headers, VnetHeader* v) const {
  std::memcpy(headers, head_.data(), shape_.payload);
  const std::uint16_t id = shape_.ipv6 ? 0 : load_be16(headers + shape_.ip + 4);
  set_ip_length(headers, shape_, payload_, id);
  std::uint8_t* tcp = headers + shape_.tcp;
  tcp[kFlags] = last_flags_;
  const std::uint32_t tcp_length =
      static_cast<std::uint32_t>(shape_.payload - shape_.tcp) + payload_;
  store_be16(tcp + kChecksum, inet_fold(pseudo_sum({headers, shape_.payload}, shape_, tcp_length)));
  v->flags = VnetHeader::kNeedsChecksum;
  v->gso_type = shape_.ipv6 ? VnetHeader::kGsoTcp6 : VnetHeader::kGsoTcp4;
  v->header_length = shape_.payload;
  v->gso_size = static_cast<std::uint16_t>(segment_size_);
  v->checksum_start = shape_.tcp;
  v->checksum_offset = kChecksum;
  return shape_.payload;
}

}  // namespace urnic::port
