// Receiving: checks lengths, ICRC and version, finds the queue pair, checks that the packet comes
// from its peer and that its state accepts it, and passes it to the half. A packet that fails a
// check is counted and dropped (IB-2).
#include <cstring>
#include <new>

#include "roce/receive_wait.h"
#include "roce/side.h"

namespace urnic::roce {

namespace {

// S-7: the peer runs urnic as well. A hello from another sender, which only guesses, has no effect.
void take_hello(Context& c, const ib::ParsedPacket& packet, Statistics* statistics) {
  const auto hello = ib::parse_hello(packet);
  if (!hello || !hello->selective ||
      !ib::Greeting::is_of_peer(packet.header, c.attributes, bool{c.requester})) {
    ++statistics->hellos_refused;
    return;
  }
  ++statistics->hellos_received;
  c.attributes.peer_selective = true;
  c.attributes.peer_parts = hello->parts;
  c.greeting.heard(*hello);
}

// S-10: sends a CNP to the sender. Marks on small packets without payload, such as ACKs, are
// ignored. The responses to a READ are requested by us, so we slow down our own requests as well.
void take_mark(Context& c, const ib::OpcodeRow& row, Instant now) {
  const bool answer = row.family == ib::Family::ReadResponse;
  if (!c.path.marked || (row.response() && !answer)) return;
  const bool tells = c.marks.seen(now);
  if (answer && tells && c.requester.rc() != nullptr) c.requester.rc()->slow_down(now);
}

// A CNP (S-10).
void take_cnp(ib::Requester& requester, const ib::ParsedPacket& packet, Instant now) {
  if (ib::Marks::is_cnp(packet)) requester.notified(now);
}

// A response or a CNP. The other services have no responses (IB-99).
void take_response(Context& c, const HalfMaker& halves, const ib::ParsedPacket& packet,
                   Instant now) {
  if (c.requester.awaited()) {  // no request has been sent that it could answer
    if (c.alive.take_answer(packet, c.attributes)) return;
    try {
      halves.requester(c);
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  ib::Requester* const half = c.requester.rc();
  if (half == nullptr) return;
  if (packet.header.row().family == ib::Family::Cnp) {
    take_cnp(*half, packet, now);
  } else {
    half->take(packet, now);
  }
}

}  // namespace

bool Side::stage(const port::Frame& frame, const net::FrameHead& head, Arrived* a) {
  const ByteView bytes{head.bytes, head.size};
  if (!is_ours(head.net, bytes)) return false;
  a->frame = &frame;
  a->context = nullptr;
  const std::size_t bth = head.net.l4_offset + kUdpHeader;
  if (bytes.size() >= bth + ib::kBthBytes) {
    a->context = table_.find(load_be32(bytes.data() + bth + 4) & ib::kMask24);
    ahead_.context(a->context);
  }
  return true;
}

void Side::process(net::FrameHead& head, const Arrived& a, Instant now) {
  plain_.interrupt();
  ++statistics_.received;
  if (a.like_last) {
    head.copy_whole(*a.frame);
    head.classify();
  }
  ib::DropCounters& drops = statistics_.drops;
  const auto datagram = find_packet(head.net, {head.bytes, head.size});
  if (!datagram) return drops.count(ib::Drop::Malformed);
  const auto headers =
      a.frame->csum == URNIC_CSUM_SOCKET ? ib::Headers::FromSocket : ib::Headers::AsCame;
  const ByteView bytes = whole_.of(*a.frame, *datagram);
  const auto packet = ib::open_packet(datagram->ip_udp, bytes, headers);
  if (!packet.ok()) return drops.count(packet.error());
  if (packet->header.bth.dest_qp == ib_cm::kGsiQpn && general_ != nullptr) {
    return general_->take(*packet, {head.net.dst, head.net.src}, now);
  }
  Context* const c = table_.find(packet->header.bth.dest_qp);
  const auto half = ib::check(packet->header, head.net.src, c == nullptr ? nullptr : &c->attributes,
                              c == nullptr ? verbs::QpState::Reset : c->qp->state.load());
  if (!half.ok()) return drops.count(half.error());
  if (c->path.route == Route::Awaited && !head.looped) [[unlikely]] {
    paths_.heard(&c->path, c->attributes.av, head.net.src, head.net.src_mac);
  }
  if (head.net.ecn == net::kCongestionExperienced) take_mark(*c, packet->header.row(), now);
  if (!a.like_last) plain_.learn(head, *c, packet->header);
  take(*c, *half, *packet, datagram->ip_udp, now);
}

// check() has verified that the state has that half.
void Side::take(Context& c, ib::Half half, const ib::ParsedPacket& packet, ByteView ip_udp,
                Instant now) {
  if (packet.header.row().family == ib::Family::Hello) {
    take_hello(c, packet, &statistics_);
  } else if (packet.header.row().family == ib::Family::Cnp) {
    take_response(c, halves_, packet, now);
  } else if (half == ib::Half::Responder) {
    take_request(c, packet, ip_udp, now);
  } else {
    take_response(c, halves_, packet, now);
  }
  if (c.attributes.reliable()) sending_.add(c);
  settle(c);
}

void Side::take_request(Context& c, const ib::ParsedPacket& packet, ByteView ip_udp, Instant now) {
  verbs::QueuePair& qp = *c.qp;
  verbs::Completion done;
  if (auto* const half = c.responder.ud()) {
    const ib::UdReceived r = half->take(packet, ip_udp, &done);
    if (r.received.completed) completions_.post(qp, done, r.source_qp);
    return;  // UD has no peer whose first request this could be
  }
  auto* const uc = c.responder.uc();
  ib::Responder* rc = c.responder.rc();
  if (uc == nullptr && rc == nullptr) {
    if (c.alive.take_question(packet, c.attributes)) return;
    rc = halves_.responder(c);
    if (rc == nullptr) return;  // out of memory: the peer repeats it
  }
  ib::Received r = uc != nullptr ? uc->take(packet, &done) : rc->take(packet, &done);
  const bool awaited = qp.state == verbs::QpState::Rtr || c.tells_first_request;
  if (r.verdict == ib::Verdict::Accept && awaited && !c.established_reported) {
    c.established_reported = true;
    c.tells_first_request = false;
    watcher_->on_qp_event(qp, QpEvent::Established);
  }
  complete_in_order(&completions_, c, r, &done);
  if (uc == nullptr) look_for_receive(&completions_, c, now);
}

// Returns the datagram in one piece.
ByteView WholePackets::of(const port::Frame& frame, const Datagram& d) {
  const std::size_t first = frame.len[0];
  if (d.offset + std::size_t{d.bytes} <= first) [[likely]]
    return {frame.data[0] + d.offset, d.bytes};
  bytes_.resize(first + frame.len[1]);
  std::memcpy(bytes_.data(), frame.data[0], first);
  std::memcpy(bytes_.data() + first, frame.data[1], frame.len[1]);
  return ByteView(bytes_).subspan(d.offset, d.bytes);
}

}  // namespace urnic::roce
