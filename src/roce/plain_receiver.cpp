#include "roce/plain_receiver.h"

#include "ib/icrc.h"
#include "ib/plain_write.h"
#include "roce/context.h"
#include "roce/frame.h"

namespace urnic::roce {
namespace {

// What holds for a queue pair until it is modified or goes.
bool takes_plain(const Context& c, const IpAddress& source) {
  return c.responder.rc() != nullptr && c.attributes.service == ib::ServiceType::Rc &&
         c.attributes.pkey == ib::kDefaultPkey && c.attributes.av.remote == source;
}

bool icrc_right(const port::Frame& f, ByteView ip_udp, ByteView packet) {
  return f.csum == URNIC_CSUM_SOCKET ? ib::icrc_good_for_some_identification(ip_udp, packet)
                                     : ib::icrc_good(ip_udp, packet);
}

}  // namespace

// E-46: what comes back from ourselves says nothing of what may come from the wire.
void PlainReceiver::learn(const wire::FrameHead& head, const Context& c,
                          const ib::PacketHeader& h) {
  if (head.looped || c.responder.rc() == nullptr || h.row().response()) return;
  flow_.learn(head.bytes, head.net);
  source_ = head.net.src;
  context_ = nullptr;
}

bool PlainReceiver::stage(const port::Frame& frame, const wire::FrameHead& head, Arrived* a) {
  if (head.looped || !flow_.match(head.bytes, head.octets, head.frame_octets, &a->flow)) {
    return false;
  }
  a->frame = &frame;
  a->like_last = true;
  const std::size_t bth = a->flow.l4_offset + kUdpHeader;
  __builtin_prefetch(table_.find(load_be32(head.bytes + bth + 4) & ib::kMask24));
  return true;
}

bool PlainReceiver::take(const wire::FrameHead& head, const Arrived& a) {
  const net::FlowMatch::Match& flow = a.flow;
  const port::Frame& f = *a.frame;
  const std::uint32_t bth = flow.l4_offset + kUdpHeader, end = flow.l4_offset + flow.l4_len;
  const bool whole = end <= f.len[0] && load_be16(head.bytes + flow.l4_offset + 4) == flow.l4_len;
  if (!whole || flow.ecn == net::kCongestionExperienced) return false;
  ib::PlainWrite w;
  if (!ib::read_plain_write(ByteView{head.bytes, head.octets}.subspan(bth), end - bth, &w)) {
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
  // Over the frame as it lies there, where headers and packet are one piece.
  const std::size_t ip_udp = source_.is_v6() ? ib::kIpv6UdpOctets : ib::kIpv4UdpOctets;
  const ByteView datagram{f.data[0] + bth - ip_udp, end - bth + ip_udp};
  if (!icrc_right(f, datagram.first(ip_udp), datagram.subspan(ip_udp))) {
    ++statistics_.received;
    statistics_.drops.count(ib::Drop::BadIcrc);
    return true;
  }
  ++statistics_.received;
  half->take_plain(w, f.data[0] + bth + w.headers);
  if (half->due()) sending_.add(*c);
  return true;
}

}  // namespace urnic::roce
