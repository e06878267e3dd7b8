// The passive side of a connection: listeners, a peer's SYN, the consumer's answer to the request.
#include <algorithm>

#include "iwarp/admission.h"
#include "iwarp/guard_allocation.h"
#include "iwarp/opening.h"
#include "iwarp/refusal_text.h"
#include "iwarp/silent_peers.h"
#include "tcp/isn.h"
#include "tcp/listen.h"

namespace urnic::iwarp {

tcp::Config Opening::tcp_config(const FlowKey& key) const {
  tcp::Config config = tcp::connection_config(s_.options.tcp, s_.keys, key, s_.wire.mtu());
  // A peer that acknowledges once per burst (E-7) must not slow down the start (RFC 3465, 2.3).
  config.slow_start_segments = 32;
  return config;
}

Connection* Opening::new_connection(const FlowKey& key) {
  Connection* c = s_.connections.open(key, &s_.pool, s_.options.tcp.receive_buffer);
  if (c != nullptr) ++s_.counters.opened;
  return c;
}

void Opening::reply(const net::FrameHead& head, const tcp::Segment& answer) {
  if (transmitter_.send_stateless(head, answer) && answer.has(tcp::kRst)) ++s_.counters.rst_sent;
}

// Handles a segment for a connection in TIME-WAIT. Returns false if there is none, or if it may be
// reopened (RFC 9293 3.6.1: a client that connects often soon reuses an earlier port).
bool Opening::take_lingering(net::FrameHead& head, const tcp::Segment& seg, bool listening,
                             Instant now) {
  if (s_.time_wait.size() == 0) return false;
  using Disposition = tcp::TimeWaitTable::Disposition;
  tcp::Segment answer;
  const auto old =
      s_.time_wait.take(flow_of(head, seg), seg, listening, &answer, s_.counters.tcp, now);
  if (!old || *old == Disposition::Reopen) return false;
  if (*old == Disposition::Reply) transmitter_.send_stateless(head, answer);
  return true;
}

Connection* Opening::take_unmatched(net::FrameHead& head, const tcp::Segment& seg, Instant now) {
  Listener* listener = s_.listeners.on(head.net.dst, seg.dst_port);
  if (take_lingering(head, seg, listener != nullptr, now)) return nullptr;
  const FlowKey key = flow_of(head, seg);
  // AC-2, AC-3: a peer that the gate refuses finds no listener here. AC-4: the gate is asked again
  // when TCP's handshake has shown that the address is the peer's own, and only that counts.
  if (listener != nullptr && tcp::check_listen(seg) == tcp::ListenAction::Accept &&
      !may_ask(s_, *listener, key, now)) {
    listener = nullptr;
  }
  const tcp::Config config = tcp_config(key);
  tcp::Backlog* backlog = listener != nullptr ? &listener->backlog : nullptr;
  if (backlog != nullptr) {
    backlog->most_half_open =
        listener->most_of_peer - std::min(backlog->waiting, listener->most_of_peer);
    if (seg.has(tcp::kSyn) && !s_.wire.interface().has_route(head.net.src)) {
      ++s_.counters.dropped;  // our reply would find no route, so no state is kept
      return nullptr;
    }
  }
  // If a silent connection would make room, the backlog is full for SYNs, which get cookies without
  // state. Room is made only for a peer that has answered a cookie.
  Instant soon;
  tcp::Backlog seen;
  const bool full = backlog != nullptr && is_full_for(*listener, key.remote);
  const bool gives_way = full && oldest_silent(s_, *listener, key.remote, now, &soon) != nullptr;
  if (full) {
    seen = *backlog;
    seen.most_waiting = seen.waiting + (gives_way ? 1 : 0);
    seen.most_half_open = 0;
  }
  const tcp::Unmatched u = tcp::take_unmatched(full ? &seen : backlog, s_.keys, config, key, seg,
                                               config.receive_buffer, s_.counters.tcp, now);
  if (full) backlog->last_cookie = seen.last_cookie;
  if (u.kind == tcp::Unmatched::Kind::Drop) return nullptr;
  if (u.kind == tcp::Unmatched::Kind::Reply) {
    reply(head, u.reply);
    return nullptr;
  }
  if (gives_way) make_room(s_, ending_, *listener, key.remote, now);
  Connection* c = new_connection(key);
  if (c == nullptr) {  // max_connections: the peer gets a RST at once
    ++s_.counters.dropped;
    s_.hooks->on_note(Note::TurnedAway, key.local_end(), key.remote_end(), "max_connections");
    const tcp::Unmatched refused = tcp::take_unmatched(nullptr, s_.keys, config, key, seg,
                                                       config.receive_buffer, s_.counters.tcp, now);
    if (refused.kind == tcp::Unmatched::Kind::Reply) reply(head, refused.reply);
    return nullptr;
  }
  const bool answered = u.kind == tcp::Unmatched::Kind::OpenFromCookie;
  guard_allocation(ending_, *c, now, [&] {
    begin_passive(*c, *listener, true, now);
    if (answered) {
      tcp::open_from_cookie(c->tcb, config, u.syn.ack, u.syn, now);
    } else {
      tcp::open_passive(c->tcb, config,
                        tcp::initial_sequence(s_.keys.isn, key.local_end(), key.remote_end(), now),
                        seg, now);
      s_.sending.push(*c);
    }
    s_.timers.arm(*c);
  });
  return answered && !c->is_over() ? c : nullptr;
}

void Opening::begin_passive(Connection& c, Listener& listener, bool half_open, Instant now) {
  c.backlog.enter(listener, c.key.remote, half_open);
  c.context.config = s_.options.context;
  c.startup = std::make_unique<Startup>(Startup::passive(s_.options.mpa));
  c.stage_deadline = now + s_.options.startup_timeout;
}

// Binds a port of our addresses; 0 chooses a free one.
Result<Listener*> Opening::bind(LocalEnd local) {
  if (s_.kernel != nullptr) return bind_kernel(local);
  if (!net::may_bind(s_.wire.interface().addresses(), local.at.ip)) {
    return Error{Errc::invalid_argument,
                 local.at.ip.to_string() + " is not an address of this device (setting 'address')"};
  }
  const auto taken = [&](std::uint16_t port) {
    local.at.port = port;
    return s_.listeners.is_taken(local);
  };
  if (local.at.port == 0) {
    local.at.port = s_.ports.choose(local.at.ip, {}, taken);
    if (local.at.port == 0) {
      return Error{Errc::in_use, "no free ephemeral TCP port on this device"};
    }
  } else if (taken(local.at.port)) {
    return Error{Errc::in_use,
                 "TCP port " + std::to_string(local.at.port) + ": already in use by this device"};
  }
  return s_.listeners.add(local, make_gate(s_.options.gate));
}

Result<void> Opening::listen(Listener& l, int backlog) {
  backlog = std::max(backlog, 1);
  l.most_of_peer = static_cast<std::uint32_t>(backlog);
  // One peer gets what the consumer requested, as with a kernel, and there is room for others.
  l.backlog.most_waiting = 4 * std::min(l.most_of_peer, ~0u / 4);
  if (s_.kernel != nullptr) return listen_kernel(l, backlog);
  if (s_.listeners.is_listened_on(l.local)) {
    return Error{Errc::in_use, "TCP port " + std::to_string(l.port()) +
                                   ": this device is already listening on it"};
  }
  l.listening = true;
  return {};
}

bool Opening::is_request(const Connection* c) {
  return c != nullptr && c->startup != nullptr &&
         c->startup->phase() == Startup::Phase::WaitConsumer;
}

void Opening::reject(Connection& c, ByteView private_data, Instant now) {
  const auto answer = c.startup->reject(private_data);
  c.backlog.leave(c.key.remote);
  c.startup.reset();
  send_last_words(c, answer, now);
}

// The peer's MPA request does not match this end's settings. Our Reply reports that, if there is
// one.
Error Opening::refuse_request(Connection& c, mpa::Refusal refusal, const mpa::StartupOptions& own,
                              ByteView reply, Instant now) {
  if (reply.empty()) {
    ending_.fail_connection(c, Errc::rejected, "", now);
    return {Errc::rejected, "the peer's MPA revision is not allowed (setting mpa_revision)"};
  }
  std::string why = refusal_text(refusal, own.policy, c.startup->request().token);
  send_last_words(c, reply, now);
  return {Errc::rejected, std::move(why)};
}

// Sends a Reply that ends the connection, and the FIN after it. No queue pair is involved.
void Opening::send_last_words(Connection& c, ByteView reply, Instant now) {
  c.own_stream = std::make_unique<ddp::Stream>(ddp::StreamConfig{}, &s_.streams);
  c.stream = c.own_stream.get();
  c.stream->sender.queue_raw(reply);
  c.stage = Stage::Lingering;
  c.stage_deadline = now + s_.options.linger_timeout;
  transport_.finish_sending(c, now);
  s_.sending.push(c);
}

Result<void> Opening::accept(Connection& c, verbs::QueuePair& qp, const ConnectParams& params,
                             Instant now) {
  if (!may_connect(qp)) {
    return Error{Errc::wrong_state, "the queue pair is or was already connected: use a new one"};
  }
  mpa::Refusal refusal = mpa::Refusal::None;
  const auto reply = c.startup->accept(params.mpa, params.private_data, &refusal);
  c.backlog.leave(c.key.remote);
  if (refusal != mpa::Refusal::None) return refuse_request(c, refusal, params.mpa, reply, now);
  begin_connecting(qp);
  qp.connection = c.id;
  c.qp = &qp;
  c.stream = &ddp::stream_of(qp);
  c.context.config = params.context;
  c.close_wait_ms = params.close_wait_ms;
  if (params.dscp != 0) transport_.set_dscp(c, params.dscp);
  c.stream->sender.queue_raw(reply);
  const mpa::Agreement agreement = c.startup->agreement();
  const bool waits_for_rtr = c.rtr_pending = agreement.rtr != mpa::kRtrNone;
  full_operation(c, agreement, now);
  set_keepalive(c, params, now);
  if (!waits_for_rtr) {
    s_.hooks->on_cm_event({.kind = CmEvent::Kind::Established, .qp = &qp});
  } else {  // the peer may be gone for ever
    c.stage_deadline = now + params.timeout;
    s_.timers.arm(c);
  }
  s_.sending.push(c);
  return {};
}

}  // namespace urnic::iwarp
