// The responder half of UD: packets are judged, then executed or dropped.
#include "ib/placement.h"
#include "ib/receive_end.h"
#include "ib/ud.h"

namespace urnic::ib {
namespace {

constexpr std::size_t kIpv4 = 20, kIpv6 = kGrhBytes;

// The part of the packet's IP header that goes into the receive. Empty if there is none.
ByteView ip_header(ByteView ip_udp) {
  if (ip_udp.empty()) return {};
  const std::size_t n = ip_udp[0] >> 4 == 4 ? kIpv4 : kIpv6;
  return ip_udp.size() < n ? ByteView() : ip_udp.first(n);
}

}  // namespace

// The checks in their order; the first that fails decides. The PSN is not checked (IB-101).
Verdict UdResponder::judge(const ParsedPacket& request, ByteView ip_udp) const {
  if (failed_) return Verdict::Ignored;
  if (request.header.row().family != Family::Send) return Verdict::InvalidRequest;
  if (request.payload.size() > qp_->pmtu() || ip_header(ip_udp).empty()) {
    return Verdict::InvalidRequest;
  }
  const std::uint64_t bytes = kGrhBytes + request.payload.size();
  const std::uint32_t index = rq_->head();
  if (!rq_->has(index) || bytes > rq_->wqe(index).capacity) return Verdict::NotReady;
  const bool writable = receive_holds(*memory_, rq_->sges(index), receive_pd(), 0, bytes);
  return writable ? Verdict::Accept : Verdict::Operational;
}

bool UdResponder::place_datagram(ByteView payload, ByteView ip_udp) {
  const ByteView ip = ip_header(ip_udp);
  const auto sges = rq_->sges(rq_->head());
  return place_in_receive(*memory_, sges, receive_pd(), kGrhBytes - ip.size(), ip) &&
         (payload.empty() || place_in_receive(*memory_, sges, receive_pd(), kGrhBytes, payload));
}

UdReceived UdResponder::take(const ParsedPacket& request, ByteView ip_udp,
                             verbs::Completion* completion) {
  Verdict verdict = judge(request, ip_udp);
  if (verdict == Verdict::Accept) {
    rq_->claim(rq_->head());  // before any change: it may throw
    if (!place_datagram(request.payload, ip_udp)) verdict = Verdict::Operational;
  }
  if (verdict == Verdict::Accept) {
    const auto bytes = static_cast<std::uint32_t>(kGrhBytes + request.payload.size());
    complete_receive(rq_, request.header, bytes, completion);
    completion->datagram = true;
    completion->ipv4 = ip_header(ip_udp).size() == kIpv4;
    ++counters_.requests;
    ++counters_.messages.sends;
    ++counters_.messages.receives;
    counters_.messages.send_bytes += request.payload.size();
    return {{verdict, true}, request.header.deth.source_qp};
  }
  if (verdict == Verdict::Ignored) return {{verdict}, 0};
  ++counters_.refused;
  if (verdict != Verdict::Operational) return {{verdict}, 0};
  // only the consumer can be informed
  fail_receive(rq_, verbs::Status::LocalProtection, completion);
  failed_ = true;
  return {{verdict, true}, 0};
}

}  // namespace urnic::ib
