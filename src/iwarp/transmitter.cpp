#include "iwarp/transmitter.h"

#include <cstring>

#include "base/inet_checksum.h"

namespace urnic::iwarp {

Sent Transmitter::transmit(Connection& c, unsigned budget, Instant now) {
  Sent turn;
  if (!c.routed) {
    if (const Route way = route(c, now); way != Route::Known) {
      // Established: TCP's timers decide. For an opening connection, the peer that requested it is
      // there, or has just come back and will ask again.
      turn.unreachable = way == Route::None && c.stage == Stage::Opening && !c.tcb.passive;
      return turn;
    }
  }
  for (;;) {
    if (budget == 0) {
      turn.more = true;
      break;
    }
    if (const unsigned n = send_run(c, budget, now); n != 0) {
      budget -= n;
      continue;
    }
    --budget;
    StreamOffset end;
    if (c.stream != nullptr) {
      c.stream->sender.execute_due();
      if (c.stream->sender.failed() && c.takes_fpdus()) {
        note_failed_sender(c, &turn.found);
        return turn;
      }
      end = c.stream->sender.available();
    }
    const tcp::SendPlan plan = tcp::plan_send(c.tcb, {end, false}, now);
    if (plan.kind == tcp::Send::None) break;
    if (!send_segment(c, plan, now, &turn.found)) {
      turn.more = s_.wire.tx().full() || loop_full(c);
      break;
    }
  }
  // E-23: copied requests complete when passed to TCP.
  if (c.stream != nullptr) complete_acked(completions_, c, c.tcb.snd.una);
  return turn;
}

// Sends one segment by `plan`. Returns false if nothing was sent (the port is full, or the source
// has no whole FPDU).
bool Transmitter::send_segment(Connection& c, const tcp::SendPlan& plan, Instant now,
                               Found* found) {
  std::uint8_t* frame;
  port::Frame* slot = nullptr;
  net::Wire::Bytes* looped = nullptr;
  if (c.loopback) {
    if (loop_full(c)) return false;
    looped = &s_.wire.new_looped(c.header.size() + plan.header + s_.wire.mtu());
    frame = looped->data();
  } else {
    slot = s_.wire.tx().next();
    if (slot == nullptr) return false;
    frame = slot->data[0];
  }
  std::uint8_t* const tcp_at = frame + c.header.size();
  std::uint32_t length = 0, sum = 0;
  bool push = false, ok = true;
  const bool carries = plan.kind == tcp::Send::Data || plan.kind == tcp::Send::Retransmit ||
                       plan.kind == tcp::Send::Probe;
  if (carries && plan.limit != 0) {
    ddp::Sender& sender = c.stream->sender;
    const auto cut = sender.cut(plan.begin, plan.limit, tcp::emss(c.tcb), plan.must_cut);
    if (cut.len == 0) {
      if (c.loopback) s_.wire.take_back_looped();
      if (sender.failed()) note_failed_sender(c, found);
      return false;
    }
    sum = sender.fill(plan.begin, cut.len, tcp_at + plan.header, &ok);
    length = cut.len;
    push = cut.push;
  }
  if (!ok) {
    if (c.loopback) s_.wire.take_back_looped();
    note_failed_sender(c, found);
    return false;
  }
  std::uint8_t ecn = 0;
  tcp::write_header(c.tcb, plan, length, push, c.key.local_port, c.key.remote_port,
                    c.header.pseudo_sum(0), sum, now, tcp_at, &ecn);
  const std::uint32_t total = static_cast<std::uint32_t>(c.header.size()) + plan.header + length;
  c.header.emit(frame, plan.header + length, c.ip_id++, ecn);
  tcp::sent(c.tcb, plan, length, push, now);
  ++c.counters.segments_out;
  if (plan.kind == tcp::Send::Retransmit) ++c.counters.retransmits;
  if (c.loopback) {
    looped->resize(total);
  } else {
    slot->len[0] = total;
    slot->len[1] = 0;
    s_.wire.tx().keep();
  }
  return true;
}

void Transmitter::emit_ack(Connection& c, Instant now) {
  send_control(c, tcp::plan_ack(c.tcb), now);
}

void Transmitter::send_control(Connection& c, const tcp::SendPlan& plan, Instant now) {
  if (!c.routed && route(c, now) != Route::Known) return;
  Found none;  // the stream is not used
  send_segment(c, plan, now, &none);
}

void Transmitter::send_reset_now(Connection& c, Instant now) {
  const tcp::SendPlan plan = tcp::plan_send(c.tcb, {}, now);
  if (plan.kind != tcp::Send::Rst || !(c.routed || route_quietly(c, now))) return;
  Found none;
  send_segment(c, plan, now, &none);
}

bool Transmitter::send_stateless(const net::FrameHead& head, const tcp::Segment& reply) {
  const bool loopback = s_.wire.interface().is_own(head.net.src);
  port::Frame* slot = loopback ? nullptr : s_.wire.tx().next();
  if (loopback ? s_.wire.loop_full_for_replies() : slot == nullptr) return false;
  const net::HeaderTemplate header =
      s_.wire.make_header(head.net.src_mac, head.net.dst, head.net.src);
  std::uint8_t bytes[net::kHeadSpan];
  std::uint8_t* const frame = loopback ? bytes : slot->data[0];
  std::uint8_t* const tcp_at = frame + header.size();
  const std::size_t n = tcp::emit_header(reply, tcp_at);
  const std::uint64_t sum =
      std::uint64_t{header.pseudo_sum(static_cast<std::uint32_t>(n))} + inet_sum({tcp_at, n});
  store_be16(tcp_at + 16, inet_checksum(sum));
  header.emit(frame, static_cast<std::uint32_t>(n), 0, 0);
  if (loopback) {  // to ourselves (E-30)
    s_.wire.new_looped(0).assign(bytes, bytes + header.size() + n);
    return true;
  }
  slot->len[0] = static_cast<std::uint32_t>(header.size() + n);
  slot->len[1] = 0;
  s_.wire.tx().keep();
  return true;
}

// Resolves the next hop to a MAC address. Pending while ARP or ND has not answered; an event
// resumes transmission.
Transmitter::Route Transmitter::route(Connection& c, Instant now) {
  using Kind = net::Resolution::Kind;
  const net::Resolution r = s_.wire.interface().resolve(c.key.remote, now);
  c.next_hop = r.next_hop;
  switch (r.kind) {
    case Kind::Mac:
      c.header = s_.wire.make_header(r.mac, c.key.local, c.key.remote);
      c.header.set_dscp(c.dscp);
      c.routed = true;
      return Route::Known;
    case Kind::Loopback:
      c.header = s_.wire.make_header(s_.wire.interface().mac(), c.key.local, c.key.remote);
      c.header.set_dscp(c.dscp);
      c.routed = c.loopback = true;
      return Route::Known;
    case Kind::Pending:
      return Route::Pending;
    case Kind::Unreachable:
      return Route::None;
  }
  return Route::None;
}

bool Transmitter::route_quietly(Connection& c, Instant now) {
  const net::Resolution r = s_.wire.interface().resolve(c.key.remote, now);
  if (r.kind != net::Resolution::Kind::Mac) return false;
  c.header = s_.wire.make_header(r.mac, c.key.local, c.key.remote);
  c.header.set_dscp(c.dscp);
  c.routed = true;
  return true;
}

}  // namespace urnic::iwarp
