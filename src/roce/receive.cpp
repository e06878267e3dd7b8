// What comes in: lengths, ICRC, version; then whose it is, and whether from its peer in a state
// that takes it; then the half. What fails on the way is counted, and nothing else (IB-2).
#include <cstring>
#include <new>

#include "roce/receive_wait.h"
#include "roce/side.h"

namespace urnic::roce {

namespace {

// S-7: the peer is urnic as well. Somebody else's, who only guesses, says nothing.
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

// S-10: who sent it is told. Marks on what is small anyway and carries nothing say nothing. Of a
// READ it is we who ask for what comes, so we ask for less as well.
void take_mark(Context& c, const ib::OpcodeRow& row, Instant now) {
  const bool answer = row.family == ib::Family::ReadResponse;
  if (!c.way.marked || (row.response() && !answer)) return;
  const bool tells = c.marks.seen(now);
  if (answer && tells && c.requester.rc() != nullptr) c.requester.rc()->slow_down(now);
}

// A CNP (S-10).
void take_cnp(ib::Requester& requester, const ib::ParsedPacket& packet, Instant now) {
  if (ib::Marks::is_cnp(packet)) requester.notified(now);
}

// Or a CNP. Nothing answers the other services (IB-99).
void take_response(Context& c, const HalfMaker& halves, const ib::ParsedPacket& packet,
                   Instant now) {
  if (c.requester.awaited()) {  // nothing has left that it could be for
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
  if (c->way.route == Route::Awaited && !head.looped) [[unlikely]] {
    ways_.heard(&c->way, c->attributes.av, head.net.src, head.net.src_mac);
  }
  if (head.net.ecn == net::kCongestionExperienced) take_mark(*c, packet->header.row(), now);
  if (!a.like_last) plain_.learn(head, *c, packet->header);
  take(*c, *half, *packet, datagram->ip_udp, now);
}

// The state that check() has seen has that half.
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
    return;  // it has no peer whose first request it could be
  }
  auto* const uc = c.responder.uc();
  ib::Responder* rc = c.responder.rc();
  if (uc == nullptr && rc == nullptr) {
    if (c.alive.take_question(packet, c.attributes)) return;
    rc = halves_.responder(c);
    if (rc == nullptr) return;  // no memory: it comes again
  }
  ib::Received r = uc != nullptr ? uc->take(packet, &done) : rc->take(packet, &done);
  const bool awaited = qp.state == verbs::QpState::Rtr || c.tells_first_request;
  if (r.verdict == ib::Verdict::Accept && awaited && !c.told_established) {
    c.told_established = true;
    c.tells_first_request = false;
    watcher_->on_qp_event(qp, QpEvent::Established);
  }
  complete_in_order(&completions_, c, r, &done);
  if (uc == nullptr) look_for_receive(&completions_, c, now);
}

// In one piece.
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
