// Status of endpoints: errors, readiness, addresses, snapshots.
#include <algorithm>
#include <utility>

#include "tcp/stack.h"

namespace urnic::tcp {

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
