// The active side of a connection: the path and the port, the SYN, and trying again as revision 1.
#include <algorithm>

#include "iwarp/opening.h"
#include "tcp/isn.h"

namespace urnic::iwarp {

namespace {

// The pause between two attempts: long for a listener on this machine, short for a person.
constexpr Duration kRedialPause = Duration::ms(5);

}  // namespace

bool Opening::is_busy(const FlowKey& key) const {
  return s_.connections.find(key) != nullptr || s_.time_wait.contains(key);
}

Result<void> Opening::choose_path(const SocketAddress& to, const LocalEnd& from, FlowKey* key) {
  auto source = from.at.ip.is_any() ? s_.wire.interface().choose_source(to.ip) : from.at.ip;
  if (source && !(from.at.ip.is_any() ? from.covers(*source) : source->is_v6() == to.ip.is_v6())) {
    return Error{Errc::unreachable, "no route to " + to.ip.to_string() + ": " +
                                        from.at.ip.to_string() + " has another IP version"};
  }
  if (!source) {
    return Error{Errc::unreachable,
                 "no route to " + to.ip.to_string() +
                     ": no address in its network and no gateway (set 'address' or 'gateway')"};
  }
  key->local = *source;
  key->remote = to.ip;
  key->remote_port = to.port;
  key->local_port = from.at.port != 0 ? from.at.port : choose_port(*source, to);
  if (key->local_port == 0) return Error{Errc::in_use, "no free local port to " + to.to_string()};
  const SocketAddress own{key->local, key->local_port};
  if (from.at.port != 0 && (own == to || is_busy(*key))) {
    return Error{Errc::in_use, "already in use or in time-wait: a connection from " +
                                   own.to_string() + " to " + to.to_string()};
  }
  return {};
}

// E-29: chooses a port for which both ends compute, by the same hash, that the flow belongs to this
// engine's queue.
std::uint16_t Opening::choose_port(const IpAddress& local, const SocketAddress& to) {
  const std::uint32_t queues = std::max<std::uint32_t>(queues_, 1);
  return s_.ports.choose(local, to, [&](std::uint16_t port) {
    if (queue_ < queues && flow_queue(flow_hash(local, port, to.ip, to.port), queues) != queue_) {
      return true;
    }
    return s_.listeners.is_kept(local, port) || is_busy({local, to.ip, port, to.port});
  });
}

// True for a queue pair that has no connection, and has been reset after an earlier one. A queue
// pair that is retried as revision 1 is already connecting.
bool Opening::may_connect(const verbs::QueuePair& qp) {
  return qp.connection == 0 && qp.state <= verbs::QpState::Rtr;
}

void begin_connecting(verbs::QueuePair& qp) {
  if (qp.state == verbs::QpState::Reset) qp.state.modify(verbs::QpState::Init);
  qp.state.advance(verbs::QpState::Rtr);
}

// The state table has no other way back from Rtr. Posted work stays.
void undo_connecting(verbs::QueuePair& qp, verbs::QpState before) {
  if (before > verbs::QpState::Init || qp.state == before) return;
  qp.state.modify(verbs::QpState::Reset);
  if (before == verbs::QpState::Init) qp.state.modify(verbs::QpState::Init);
}

Result<void> Opening::connect(verbs::QueuePair& qp, const SocketAddress& to,
                              const ConnectParams& params, Instant now) {
  if (!may_connect(qp)) {
    return Error{Errc::wrong_state, "the queue pair is or was already connected: use a new one"};
  }
  FlowKey key;
  std::unique_ptr<KernelLink> link;
  if (s_.kernel != nullptr) {
    auto opened = open_link(to, params.source, &key);
    if (opened) {
      link = std::move(*opened);
    } else if (opened.error().code == Errc::refused && params.refusal_retry > Duration::zero()) {
      key = {params.source.at.ip, to.ip, params.source.at.port, to.port};
      link = std::make_unique<KernelLink>(kernel_tcp::Socket(), s_.kernel.get());
    } else {
      return opened.error();
    }
  } else if (auto path = choose_path(to, params.source, &key); !path) {
    return path;
  }
  auto startup = std::make_unique<Startup>(Startup::active(params.mpa, params.private_data));
  Connection* c = new_connection(key);
  if (c == nullptr)
    return Error{Errc::no_memory, "the limit of connections is reached (setting max_connections)"};
  const verbs::QpState before = qp.state;
  begin_connecting(qp);
  qp.connection = c->id;
  c->qp = &qp;
  c->stream = &ddp::stream_of(qp);
  c->context.config = params.context;
  c->close_wait_ms = params.close_wait_ms;
  c->dscp = params.dscp;
  c->startup = std::move(startup);
  c->stage_deadline = now + params.timeout;
  try {
    begin_active(*c, std::move(link), params, now);
  } catch (const std::bad_alloc&) {
    ending_.abort_silently(*c, now);
    undo_connecting(qp, before);
    throw;
  }
  return {};
}

void Opening::begin_active(Connection& c, std::unique_ptr<KernelLink> link,
                           const ConnectParams& params, Instant now) {
  if (params.refusal_retry > Duration::zero() || params.source.at.port != 0 ||
      !params.source.at.ip.is_any() || params.keepalive) {
    c.redial = std::make_unique<Redial>(
        Redial{params.source, params.keepalive, now + params.refusal_retry, Instant::never()});
  }
  if (link != nullptr && !link->socket.is_open()) {  // already refused
    c.link = std::move(link);
    await_listener(c, now);
    return;
  }
  if (link != nullptr) {
    if (!adopt_link(c, std::move(link), now)) return;
    set_keepalive(c, params, now);
    s_.timers.arm(c);
    return;
  }
  const FlowKey& key = c.key;
  tcp::open_active(c.tcb, tcp_config(key),
                   tcp::initial_sequence(s_.keys.isn, {key.local, key.local_port},
                                         {key.remote, key.remote_port}, now),
                   now);
  set_keepalive(c, params, now);
  s_.sending.push(c);
  s_.timers.arm(c);
}

bool Opening::await_listener(Connection& c, Instant now) {
  if (c.stage != Stage::Opening || c.redial == nullptr || now >= c.redial->until) return false;
  c.redial->at = std::min(now + kRedialPause, c.redial->until);
  if (c.link != nullptr) {
    transport_.abort(c, now);
  } else {
    s_.connections.leave_flow(c);  // later segments of it belong to no connection
  }
  s_.timers.arm(c);
  return true;
}

void Opening::redial(Connection& c, Instant now) {
  const LocalEnd from = c.redial->source;
  const SocketAddress to{c.key.remote, c.key.remote_port};
  c.redial->at = Instant::never();
  FlowKey key;
  std::unique_ptr<KernelLink> link;
  Error error;
  if (s_.kernel != nullptr) {
    auto opened = open_link(to, from, &key);
    if (opened) {
      link = std::move(*opened);
    } else {
      error = opened.error();
      if (error.code == Errc::refused && await_listener(c, now)) return;
    }
  } else if (auto path = choose_path(to, from, &key); !path) {
    error = path.error();
  }
  if (!error.message.empty()) {
    ending_.fail_connection(c, error.code, error.message, now);
    return;
  }
  s_.connections.join_flow(c, key);
  if (link != nullptr) {
    if (!adopt_link(c, std::move(link), now)) return;
  } else {
    tcp::open_active(c.tcb, tcp_config(key),
                     tcp::initial_sequence(s_.keys.isn, {key.local, key.local_port}, to, now), now);
    c.routed = false;
    s_.sending.push(c);
  }
  ConnectParams params;
  params.keepalive = c.redial->keepalive;
  set_keepalive(c, params, now);
}

// The peer ended the connection while we waited for the Reply to an enhanced Request.
bool Opening::refuses_revision2(const Connection& c) const {
  return c.startup != nullptr && c.startup->is_active() && c.startup->options().revision == 2 &&
         c.startup->phase() == Startup::Phase::WaitReply;
}

// E-35: tries again with plain RFC 5044, on a new TCP connection, with the same request. If that
// fails, the queue pair gets the end of the old connection, whose stage is kept until then.
void Opening::retry_as_revision1(Connection& c, Instant now) {
  verbs::QueuePair* const qp = c.qp;
  ConnectParams params;
  params.context = c.context.config;
  params.mpa = c.startup->options();
  params.mpa.revision = 1;
  const ByteView pd = c.startup->request().private_view();
  params.private_data.assign(pd.begin(), pd.end());
  if (c.redial != nullptr) {
    params.source = c.redial->source;
    params.keepalive = c.redial->keepalive;
    params.refusal_retry = std::max(c.redial->until - now, Duration::zero());
  }
  s_.connections.leave_flow(c);  // the port may be fixed
  params.timeout =
      c.stage_deadline.is_never() ? s_.options.startup_timeout : c.stage_deadline - now;
  transport_.abort(c, now);
  s_.sending.push(c);
  c.qp = nullptr;
  qp->connection = 0;
  ddp::stream_of(*qp).sender.forget_startup();
  const auto back = [&] {
    c.qp = qp;
    qp->connection = c.id;
  };
  try {
    if (auto again = connect(*qp, {c.key.remote, c.key.remote_port}, params, now); !again) {
      back();
      ending_.fail_connection(c, again.error().code, again.error().message, now);
      return;
    }
  } catch (const std::bad_alloc&) {
    back();
    throw;
  }
  c.stream = nullptr;
  c.startup.reset();
  c.stage = Stage::Lingering;
  c.stage_deadline = now + s_.options.linger_timeout;
  if (transport_.is_closed(c)) ending_.take_closed(c, now);
}

}  // namespace urnic::iwarp
