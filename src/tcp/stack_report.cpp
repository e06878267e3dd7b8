// What endpoints are asked and told: options, errors, readiness, snapshots.
#include <algorithm>
#include <utility>

#include "tcp/stack.h"

namespace urnic::tcp {

Status Stack::set_default(Option o, std::int64_t value) {
  return tcp::set_option(config_.options, o, value) ? Status::Ok : Status::Invalid;
}

Status Stack::set_option(Endpoint e, Option o, std::int64_t value, Instant at) {
  const Entry entry(*this, at);
  Socket* s = find(e);
  if (s == nullptr) return Status::Invalid;
  return apply_option(*s, o, value, entry.now());
}

Status StackCore::apply_option(Socket& s, Option o, std::int64_t value, Instant now) {
  if (s.kind == Socket::Kind::Stream && !changeable_when_open(o)) return Status::Invalid;
  if (!tcp::set_option(s.options, o, value)) return Status::Invalid;
  if (!s.open()) return Status::Ok;
  // Tuned buffers go on from where they are, to the new bound.
  if (o == Option::SendBuffer && !s.options.auto_tune) {
    s.send_granted = s.options.send_buffer;
    s.tx.set_capacity(s.send_granted);
  }
  if (o == Option::ReceiveBuffer && !s.options.auto_tune) {
    s.receive_granted = s.options.tcp.receive_buffer;
    s.rx.set_capacity(s.receive_granted);
  }
  Config& live = s.tcb.config;
  Config next = s.options.tcp;
  // Settled when the connection was opened.
  next.mss = live.mss;
  next.ip_header = live.ip_header;
  next.ts_offset = live.ts_offset;
  next.challenge_acks = live.challenge_acks;
  next.challenge_key = live.challenge_key;
  next.window_shift = live.window_shift;
  next.receive_buffer = s.receive_granted;
  live = next;
  s.tcb.rcv.holes.set_limit(live.hole_limit);
  if (o == Option::Keepalive) {
    s.tcb.timers.keepalive = Instant::never();
    s.tcb.timers.keepalive_sent = 0;
    if (synchronized(s.tcb.state)) arm_keepalive(s.tcb, now);
  }
  if (o == Option::SendBuffer && s.tx.room() != 0) note(s, kWritable);
  if (o == Option::ReceiveBuffer && set_receive_room(s.tcb, s.receive_room(), now)) {
    emit(s, plan_ack(s.tcb), now);
  }
  pump(s, now);
  settle(s, now);
  return Status::Ok;
}

std::optional<std::int64_t> Stack::option(Endpoint e, Option o) const {
  const Socket* s = find(e);
  if (s == nullptr || option_name(o) == "unknown") return std::nullopt;
  return get_option(s->options, o);
}

Status Stack::take_error(Endpoint e) {
  Socket* s = find(e);
  if (s == nullptr) return Status::Invalid;
  return std::exchange(s->error, Status::Ok);
}

Readiness Stack::readiness(Endpoint e) const {
  Readiness r;
  const Socket* s = find(e);
  if (s == nullptr) return r;
  r.acceptable = !s->ready.empty();
  r.error = s->error != Status::Ok;
  if (s->kind != Socket::Kind::Stream) return r;
  r.readable = static_cast<std::size_t>(s->unread());
  r.peer_closed = s->tcb.rcv.fin_taken || s->dead;
  r.connected = !s->dead && synchronized(s->tcb.state);
  if (r.connected && !s->write_closed) r.writable = s->tx.room();
  return r;
}

StackCounters Stack::counters() const {
  StackCounters c = counters_;
  c.datagrams_out = out_.sent();
  return c;
}

std::optional<Backlog> Stack::backlog(Endpoint e) const {
  const Socket* s = find(e);
  if (s == nullptr || s->kind != Socket::Kind::Listener) return std::nullopt;
  return s->backlog;
}

std::optional<SocketAddress> Stack::local_address(Endpoint e) const {
  const Socket* s = find(e);
  if (s == nullptr) return std::nullopt;
  return s->local;
}

std::optional<SocketAddress> Stack::peer_address(Endpoint e) const {
  const Socket* s = find(e);
  if (s == nullptr || s->kind != Socket::Kind::Stream) return std::nullopt;
  return s->remote;
}

std::optional<Snapshot> Stack::snapshot(Endpoint e, Instant now) const {
  const Socket* s = find(e);
  if (s == nullptr || s->kind != Socket::Kind::Stream) return std::nullopt;
  const Tcb& t = s->tcb;
  Snapshot v;
  v.state = t.state;
  v.close_reason = t.close_reason;
  v.snd_una = snd_una_seq(t).value();
  v.snd_nxt = snd_nxt_seq(t).value();
  v.rcv_nxt = rcv_nxt_seq(t).value();
  v.iss = t.snd.iss.value();
  v.irs = t.rcv.irs.value();
  v.snd_wnd = t.snd.wnd;
  const StreamOffset nxt = t.rcv.holes.rcv_nxt();
  v.rcv_wnd = t.rcv.adv > nxt ? static_cast<std::uint32_t>(t.rcv.adv - nxt) : 0;
  v.acked = t.snd.una.value();
  v.delivered = nxt.value();
  v.cwnd = t.cc.cwnd;
  v.ssthresh = t.cc.ssthresh;
  v.recovery = t.loss.state;
  v.in_flight = flight(t);
  v.pipe = loss_pipe(t);
  v.sacked = t.sent_segments.sacked();
  v.lost = t.sent_segments.lost();
  v.retransmitted = t.sent_segments.retransmitted();
  v.reordering = t.loss.reordering;
  v.retransmissions = s->retransmissions;
  v.rtt_measured = t.rtt.measured;
  v.srtt = t.rtt.srtt;
  v.rttvar = t.rtt.rttvar;
  v.rto = t.rtt.rto;
  v.backoff = t.rtt.backoff;
  v.retries = t.timers.retries;
  v.probes = static_cast<std::uint8_t>(std::min(
      255, t.timers.persist_backoff + t.timers.keepalive_sent + (t.loss.rack.probe_out ? 1 : 0)));
  v.since_data_sent = now - t.timers.last_sent;
  v.since_received = now - t.timers.last_received;
  v.send_mss = static_cast<std::uint16_t>(emss(t));
  v.advertised_mss = t.config.mss;
  v.peer_mss = t.snd.peer_mss;
  v.receive_mss = t.rcv.largest;
  v.sack = t.sack_on;
  v.timestamps = t.ts_on;
  v.ecn = t.ecn_on;
  v.send_shift = t.snd.wscale;
  v.receive_shift = t.rcv.wscale;
  v.window_scaling = v.send_shift != 0 || v.receive_shift != 0;
  v.holes = t.rcv.holes.size();
  v.unsent = static_cast<std::size_t>(s->tx.end() - std::max(s->tx.begin(), t.snd.nxt.value()));
  v.unread = static_cast<std::size_t>(s->unread());
  v.send_buffer = s->send_granted;
  v.receive_buffer = s->receive_granted;
  return v;
}

}  // namespace urnic::tcp
