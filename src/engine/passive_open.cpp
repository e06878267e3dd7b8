// The passive side of a connection: listeners, a peer's SYN, the consumer's answer to its request.
#include <algorithm>

#include "engine/engine.h"
#include "iwarp/refusal_text.h"
#include "tcp/isn.h"

namespace urnic::engine {

using namespace iwarp;

Listener* Engine::listener_on(std::uint16_t port) const {
  for (const auto& l : listeners_) {
    if (l->port == port && !l->closed) return l.get();
  }
  return nullptr;
}

// For a connection in TIME-WAIT; false when there is none, or none any more (RFC 9293 3.6.1: a
// client that comes often soon comes from a port again that it had before).
bool Engine::take_lingering(Staged& s, bool listening, Instant now) {
  if (time_wait_.size() == 0) return false;
  using Verdict = tcp::TimeWaitTable::Verdict;
  tcp::Segment reply;
  const auto old = time_wait_.take(s.flow(), s.seg, listening, &reply, counters_.tcp, now);
  if (!old || *old == Verdict::Reopen) return false;
  if (*old == Verdict::Reply) send_stateless(s, reply);
  return true;
}

// The connection the segment belongs to now, if it has opened one.
Connection* Engine::on_unmatched(Staged& s, Instant now) {
  Listener* listener = listener_on(s.seg.dst_port);
  if (take_lingering(s, listener != nullptr, now)) return nullptr;
  const FlowKey key = s.flow();
  const tcp::Config config = tcp_config(key);
  tcp::Backlog* backlog = listener != nullptr ? &listener->backlog : nullptr;
  if (backlog != nullptr) {
    backlog->most_half_open =
        backlog->most_waiting - std::min(backlog->waiting, backlog->most_waiting);
    if (s.seg.has(tcp::kSyn) && !interface_.has_route(s.net.src)) {
      ++counters_.rx_tcp_dropped;  // our answer would find no way: nothing is kept for it
      return nullptr;
    }
  }
  const tcp::Unmatched u = tcp::take_unmatched(backlog, keys_, config, key, s.seg,
                                               config.receive_buffer, counters_.tcp, now);
  if (u.kind == tcp::Unmatched::Kind::Drop) return nullptr;
  if (u.kind == tcp::Unmatched::Kind::Reply) {
    if (send_stateless(s, u.reply) && u.reply.has(tcp::kRst)) ++counters_.rst_sent;
    return nullptr;
  }
  Connection* c = new_connection(key);
  if (c == nullptr) {  // max_connections: the peer is told at once
    ++counters_.rx_tcp_dropped;
    hooks_->on_note(Note::TurnedAway, key, "max_connections");
    const tcp::Unmatched refused = tcp::take_unmatched(nullptr, keys_, config, key, s.seg,
                                                       config.receive_buffer, counters_.tcp, now);
    if (refused.kind == tcp::Unmatched::Kind::Reply && send_stateless(s, refused.reply)) {
      ++counters_.rst_sent;
    }
    return nullptr;
  }
  begin_half_open(*c, *listener, now);
  const bool answered = u.kind == tcp::Unmatched::Kind::OpenFromCookie;
  if (answered) {
    tcp::open_from_cookie(c->tcb, config, u.syn.ack, u.syn, now);
  } else {
    tcp::open_passive(c->tcb, config,
                      tcp::initial_sequence(keys_.isn, key.local_end(), key.remote_end(), now),
                      s.seg, now);
    enqueue_tx(*c);
  }
  arm_timer(*c);
  return answered ? c : nullptr;
}

void Engine::begin_passive(Connection& c, Listener& listener, Instant now) {
  c.listener = &listener;
  ++listener.backlog.waiting;
  c.context.config = options_.context;
  c.startup = std::make_unique<Startup>(Startup::passive(options_.mpa));
  c.stage_deadline = now + options_.startup_timeout;
}

void Engine::begin_half_open(Connection& c, Listener& listener, Instant now) {
  begin_passive(c, listener, now);
  c.half_open = true;
  --listener.backlog.waiting;
  ++listener.backlog.half_open;
}

// The consumer has answered, or the connection is gone.
void Engine::leave_listener(Connection& c) {
  if (c.listener == nullptr) return;
  --(c.half_open ? c.listener->backlog.half_open : c.listener->backlog.waiting);
  c.half_open = false;
  c.listener = nullptr;
}

Listener* Engine::listen(std::uint16_t port, int backlog, Error* error) {
  if (kernel_ != nullptr) return listen_kernel(port, backlog, error);
  const auto taken = [&](std::uint16_t p) {
    return std::any_of(listeners_.begin(), listeners_.end(),
                       [&](const auto& l) { return l->port == p && !l->closed; });
  };
  if (port == 0) {
    port = ports_.choose(IpAddress::any_v4(), {}, taken);
    if (port == 0) {
      *error = {Errc::in_use, "every ephemeral TCP port is listened on by this device"};
      return nullptr;
    }
  }
  if (taken(port)) {
    *error = {Errc::in_use,
              "TCP port " + std::to_string(port) + " is already listened on by this device"};
    return nullptr;
  }
  listeners_.push_back(std::make_unique<Listener>());
  Listener* l = listeners_.back().get();
  l->port = port;
  l->backlog.most_waiting = static_cast<std::uint32_t>(std::max(backlog, 1));
  return l;
}

void Engine::close_listener(Listener* listener, Instant now) {
  const Turn turn(*this);
  connections_.for_each([&](Connection& c) {
    if (c.listener == listener) fail_connection(c, Errc::closed, "the listener was closed", now);
  });
  if (kernel_ != nullptr) close_listening(*listener);
  std::erase_if(listeners_, [&](const auto& l) { return l.get() == listener; });
  transmit_round(now);
}

// The peer's MPA request does not suit what this end is set to: our Reply says so, if there is one.
Error Engine::refuse_request(Connection& c, mpa::Refusal refusal, const mpa::StartupOptions& own,
                             ByteView reply, Instant now) {
  if (reply.empty()) {
    fail_connection(c, Errc::rejected, "", now);
    transmit_round(now);
    return {Errc::rejected, "the peer's MPA revision is not accepted here (mpa_revision)"};
  }
  std::string why = refusal_text(refusal, own.policy, c.startup->request().token);
  send_last_words(c, reply, now);
  return {Errc::rejected, std::move(why)};
}

// A Reply that ends the connection, and the FIN behind it; no queue pair has to do with them.
void Engine::send_last_words(Connection& c, ByteView reply, Instant now) {
  c.own_stream = std::make_unique<ddp::Stream>(ddp::StreamConfig{}, &streams_);
  c.stream = c.own_stream.get();
  c.stream->sender.queue_raw(reply);
  c.stage = Stage::Lingering;
  c.stage_deadline = now + options_.linger_timeout;
  finish_sending(c, now);
  enqueue_tx(c);
  transmit_round(now);
}

Result<void> Engine::accept(ConnectionId connection, verbs::QueuePair& qp,
                            const ConnectParams& params, Instant now) {
  const Turn turn(*this);
  Connection* c = find(connection);
  if (c == nullptr || c->startup == nullptr ||
      c->startup->phase() != Startup::Phase::WaitConsumer) {
    return Error{Errc::closed, "the connection request is gone (the peer gave up or was reset)"};
  }
  if (!may_connect(qp)) {
    return Error{Errc::wrong_state, "the queue pair already has or had a connection"};
  }
  mpa::Refusal refusal = mpa::Refusal::None;
  const auto reply = c->startup->accept(params.mpa, params.private_data, &refusal);
  leave_listener(*c);
  if (refusal != mpa::Refusal::None) return refuse_request(*c, refusal, params.mpa, reply, now);
  begin_connecting(qp);
  qp.connection = c->id;
  c->qp = &qp;
  c->stream = &ddp::stream_of(qp);
  c->context.config = params.context;
  c->stream->sender.queue_raw(reply);
  const mpa::Agreement agreement = c->startup->agreement();
  const bool waits_for_rtr = c->rtr_pending = agreement.rtr != mpa::kRtrNone;
  full_operation(*c, agreement, now);
  if (!c->is_over()) set_keepalive(*c, params, now);
  if (!c->is_over() && !waits_for_rtr) {
    hooks_->on_cm_event({.kind = CmEvent::Kind::Established, .qp = &qp});
  } else if (!c->is_over() && c->rtr_pending) {  // the peer may be gone for good
    c->stage_deadline = now + params.timeout;
    arm_timer(*c);
  }
  enqueue_tx(*c);
  transmit_round(now);
  return {};
}

void Engine::reject(ConnectionId connection, ByteView private_data, Instant now) {
  const Turn turn(*this);
  Connection* c = find(connection);
  if (c == nullptr || c->startup == nullptr ||
      c->startup->phase() != Startup::Phase::WaitConsumer) {
    return;
  }
  const auto reply = c->startup->reject(private_data);
  leave_listener(*c);
  c->startup.reset();
  send_last_words(*c, reply, now);
}

bool Engine::request_info(ConnectionId connection, RequestInfo* out) const {
  const Connection* c = find(connection);
  if (c == nullptr || c->startup == nullptr) return false;
  out->key = c->key;
  const ByteView pd = c->startup->request().private_view();
  out->private_data.assign(pd.begin(), pd.end());
  const mpa::Agreement a = c->startup->preview(options_.mpa);
  out->ird = a.ird;
  out->ord = a.ord;
  return true;
}

}  // namespace urnic::engine
