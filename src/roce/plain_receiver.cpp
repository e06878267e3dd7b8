#include "roce/plain_receiver.h"

#include <algorithm>

#include "ib/icrc.h"
#include "ib/plain_write.h"
#include "roce/context.h"
#include "roce/frame.h"

namespace urnic::roce {
namespace {

// True if the queue pair's own conditions hold; they do until it is modified or destroyed.
bool takes_plain(const Context& c, const IpAddress& source) {
  return c.responder.rc() != nullptr && c.path.found() &&
         c.attributes.service == ib::ServiceType::Rc && c.attributes.pkey == ib::kDefaultPkey &&
         c.attributes.av.remote == source;
}

// Checks the ICRC in place, from `ip` to `end`, where headers and packet are contiguous.
bool icrc_right(const port::Frame& f, std::size_t ip, std::size_t bth, std::size_t end) {
  const ByteView ip_udp{f.data[0] + ip, bth - ip}, packet{f.data[0] + bth, end - bth};
  return f.csum == URNIC_CSUM_SOCKET ? ib::icrc_good_for_some_identification(ip_udp, packet)
                                     : ib::icrc_good(ip_udp, packet);
}

}  // namespace

void LastStaged::remember(const net::FrameHead& head, const net::FlowMatch::Match& flow) {
  constexpr std::uint32_t kFront = 8;  // of the BTH
  const std::uint32_t n = flow.l4_offset + kUdpHeader + kFront;
  if (n > std::min<std::uint32_t>(kSpan, head.size)) return forget();
  if (n != masked_) {
    std::array<std::uint8_t, kSpan> mask{};
    std::fill_n(mask.begin(), n, std::uint8_t{0xff});
    std::memcpy(mask_.data(), mask.data(), kSpan);
    masked_ = n;
  }
  std::memcpy(begin_.data(), head.bytes, kSpan);
  if (++serial_ == 0) ++serial_;
  bytes_ = head.frame_bytes;
  flow_ = flow;
}

// E-46: a looped frame tells nothing about frames from the wire.
void PlainReceiver::learn(const net::FrameHead& head, const Context& c, const ib::PacketHeader& h) {
  if (head.looped || !c.responder || !c.attributes.reliable() || h.row().response()) return;
  forget();
  flow_.learn(head.bytes, head.net);
  source_ = head.net.src;
}

// Matches the flow but not the headers of the last frame; remembers these headers.
bool PlainReceiver::stage_another(const net::FrameHead& head, net::FlowMatch::Match* flow) {
  if (!flow_.match(head.bytes, head.size, head.frame_bytes, flow)) return false;
  const std::size_t bth = flow->l4_offset + kUdpHeader;
  staged_ = table_.find(load_be32(head.bytes + bth + 4) & ib::kMask24);
  last_.remember(head, *flow);
  ahead_.context(staged_);
  return true;
}

// Checks the fields that take_alone() would check against `next_`. Other frames with the same
// headers are not checked again.
bool PlainReceiver::fits(const net::FrameHead& head, const Arrived& a) {
  const net::FlowMatch::Match& flow = a.flow;
  const std::uint32_t bth = flow.l4_offset + kUdpHeader;
  const std::uint32_t around = kUdpHeader + ib::kBthBytes + ib::kIcrcBytes;
  if (flow.l4_len != around + next_.payload) return false;
  if (load_be16(head.bytes + flow.l4_offset + 4) != flow.l4_len) return false;
  if (flow.ecn == net::kCongestionExperienced) return false;
  if (load_be64(head.bytes + bth) != next_.front) return false;
  const std::size_t ip_udp = source_.is_v6() ? ib::kIpv6UdpBytes : ib::kIpv4UdpBytes;
  fitting_ = {a.headers, static_cast<std::uint32_t>(bth - ip_udp), bth,
              flow.l4_offset + flow.l4_len};
  return true;
}

// The fastest path: a middle packet of the same Write as the last one, with nothing else in
// between. The fields that take_alone() would check are unchanged, or are in `next_`.
bool PlainReceiver::take_next(const net::FrameHead& head, const Arrived& a) {
  if (next_.payload == 0 || next_.payload > next_.left) return false;
  const bool same = a.headers != 0 && a.headers == fitting_.headers;
  if (!same && !fits(head, a)) return false;
  const port::Frame& f = *a.frame;
  const Fitting at = fitting_;
  if (at.end > f.len[0]) return false;
  const std::uint32_t last = load_be32(head.bytes + at.bth + 8);
  ib::Responder& half = *taker_->responder.rc();
  if (ib::Psn(last & ib::kMask24) != half.state().expected) return false;
  if (!icrc_right(f, at.ip, at.bth, at.end)) {
    ++statistics_.received;
    statistics_.drops.count(ib::Drop::BadIcrc);
    return true;
  }
  const bool ask = last >> 31 != 0;
  if (!half.take_middle(&next_, f.data[0] + at.bth + ib::kBthBytes, ask)) return false;
  ++statistics_.received;
  if (ask) sending_.add_owing(*taker_);  // nothing but an ACK has become due
  return true;
}

bool PlainReceiver::take_alone(const net::FrameHead& head, const Arrived& a) {
  interrupt();
  const net::FlowMatch::Match& flow = a.flow;
  const port::Frame& f = *a.frame;
  const std::uint32_t bth = flow.l4_offset + kUdpHeader, end = flow.l4_offset + flow.l4_len;
  const bool whole = end <= f.len[0] && load_be16(head.bytes + flow.l4_offset + 4) == flow.l4_len;
  if (!whole || flow.ecn == net::kCongestionExperienced) return false;
  ib::PlainWrite w;
  if (!ib::read_plain_write(ByteView{head.bytes, head.size}.subspan(bth), end - bth, &w)) {
    return false;
  }
  Context* const c = table_.find(w.dest_qp);
  if (c == nullptr || w.pkey != ib::kDefaultPkey || c->qp->state != verbs::QpState::Rts) {
    return false;
  }
  if (c != context_) {
    if (!takes_plain(*c, source_)) return false;
    context_ = c;
  }
  ib::Responder* const half = c->responder.rc();
  if (!ib::admit_plain_write(half->state(), &w)) return false;
  const std::size_t ip_udp = source_.is_v6() ? ib::kIpv6UdpBytes : ib::kIpv4UdpBytes;
  if (!icrc_right(f, bth - ip_udp, bth, end)) {
    ++statistics_.received;
    statistics_.drops.count(ib::Drop::BadIcrc);
    return true;
  }
  if (!half->take_plain(w, f.data[0] + bth + w.headers)) return false;
  ++statistics_.received;
  if (half->due()) sending_.add_owing(*c);
  taker_ = c;
  next_ = ib::next_middle(half->state(), w, load_be64(head.bytes + bth));
  fitting_.headers = 0;
  return true;
}

}  // namespace urnic::roce
