// The life of a connection: SYN to MPA start-up to full operation to the end, and what the queue
// pair and the consumer learn of it. verbs/qp_state.h has the table of states.
#include <algorithm>
#include <cstring>

#include "base/mutant.h"
#include "ddp_rdma/terminate.h"
#include "engine/engine.h"
#include "tcp/isn.h"
#include "tcp/syn_cookie.h"

namespace urnic::engine {
namespace {

constexpr std::uint32_t kSlotMask = 0xffffff;

// Ready-to-receive message of the initiator (RFC 6581 9.2): STag 1, since some hardware refuses 0.
std::uint32_t build_rtr(std::uint8_t kind, ddp::Stream& stream, std::uint8_t* ulpdu) {
  ddp::SegmentHeader h;
  h.last = true;
  if (kind == mpa::kRtrWrite) {
    h.op = ddp::Opcode::Write;
    h.stag = 1;
  } else {
    h.op = ddp::Opcode::ReadRequest;
    h.qn = ddp::kQnReadRequest;
    h.msn = stream.sender.take_rtr_read_msn();
    h.read.sink_stag = 1;
    h.read.source_stag = 1;
  }
  return ddp::emit_header(h, ulpdu);
}

// Why two framing policies do not come together, for the end that runs `own`.
std::string describe(mpa::Refusal refusal, mpa::Policy own, const mpa::PolicyToken& peer) {
  const std::string ours(mpa::policy_name(own));
  if (refusal == mpa::Refusal::PolicyDiffers) {
    return "the peer runs framing = " + std::string(mpa::policy_name(peer.policy)) +
           ", this end framing = " + ours + ": both must be set alike";
  }
  return "the peer does not know or not offer framing = " + ours +
         ", which both ends must be set to (urnic only)";
}

std::string describe(const ddp::TerminateInfo& t) {
  return "the peer sent Terminate layer " + std::to_string(t.layer) + " type " +
         std::to_string(t.etype) + " code " + std::to_string(t.code);
}

}  // namespace

// ---- connection table ---------------------------------------------------------------------------

Connection* Engine::new_connection(const FlowKey& key, Instant now) {
  (void)now;
  std::uint32_t slot;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else {
    slot = static_cast<std::uint32_t>(slots_.size());
    if (slot > kSlotMask) return nullptr;
    slots_.emplace_back();
    generations_.push_back(0);
  }
  if (++generations_[slot] > 0xff) generations_[slot] = 1;
  slots_[slot] = std::make_unique<Connection>(&pool_, options_.tcp.receive_buffer);
  Connection* c = slots_[slot].get();
  c->id = slot | (static_cast<std::uint32_t>(generations_[slot]) << 24);
  c->key = key;
  flows_.insert(key, slot);
  ++live_;
  ++counters_.connections_opened;
  return c;
}

// The MSS option tells what fits the MTU less the fixed IP and TCP headers (RFC 6691).
tcp::Config Engine::tcp_config(const FlowKey& key) const {
  tcp::Config config = options_.tcp;
  config.mss = static_cast<std::uint16_t>(std::min(mtu_, 65535u) - (key.local.is_v6() ? 60 : 40));
  config.ip_header = key.local.is_v6() ? 40 : 20;
  // A peer that acknowledges once per burst (E-7) shall not slow the start down (RFC 3465, 2.3).
  config.slow_start_segments = 32;
  return config;
}

void Engine::free_connection(Connection& c) {
  const std::uint32_t slot = c.id & kSlotMask;
  add_to_ended(connection_stats(c));
  leave_listener(c);
  flows_.erase(c.key);
  if (recent_.connection == &c) recent_.connection = nullptr;
  c.id = 0;
  // Later frames of the same burst may still point here; the memory goes at the end of poll.
  graveyard_.push_back(std::move(slots_[slot]));
  free_slots_.push_back(slot);
  --live_;
  ++counters_.connections_closed;
}

Connection* Engine::find(ConnectionId id) {
  const std::uint32_t slot = id & kSlotMask;
  if (id == 0 || slot >= slots_.size() || slots_[slot] == nullptr) return nullptr;
  return slots_[slot]->id == id ? slots_[slot].get() : nullptr;
}
const Connection* Engine::find(ConnectionId id) const {
  return const_cast<Engine*>(this)->find(id);
}

// ---- passive side -------------------------------------------------------------------------------

// True when there is a connection now that the segment belongs to.
bool Engine::on_unmatched(Staged& s, Instant now) {
  Listener* listener = nullptr;
  for (const auto& l : listeners_) {
    if (l->port == s.seg.dst_port && !l->closed) listener = l.get();
  }
  if (listener == nullptr) {
    ++counters_.rx_no_connection;
    send_rst(s);
    return false;
  }
  switch (tcp::check_listen(s.seg)) {
    case tcp::ListenAction::Discard:
      return false;
    case tcp::ListenAction::Rst:
      if (take_cookie(*listener, s, now)) return true;
      ++counters_.rx_no_connection;
      send_rst(s);
      return false;
    case tcp::ListenAction::Accept:
      break;
  }
  if (listener->pending - listener->half_open >= listener->backlog) {
    ++counters_.rx_tcp_dropped;  // the consumer is slow; the peer's SYN is retransmitted
    return false;
  }
  if (listener->pending >= listener->backlog) {
    send_cookie(*listener, s, now);
    return false;
  }
  const FlowKey key{s.net.dst, s.net.src, s.seg.dst_port, s.seg.src_port};
  Connection* c = new_connection(key, now);
  if (c == nullptr) return false;
  begin_half_open(*c, *listener, now);
  tcp::open_passive(c->tcb, tcp_config(key),
                    tcp::initial_sequence(isn_key_, {key.local, key.local_port},
                                          {key.remote, key.remote_port}, now),
                    s.seg, now);
  enqueue_tx(*c);
  arm_timer(*c);
  return false;
}

void Engine::begin_passive(Connection& c, Listener& listener, Instant now) {
  c.listener = &listener;
  ++listener.pending;
  c.context.config = options_.context;
  c.startup = std::make_unique<verbs::Startup>(verbs::Startup::passive(options_.mpa));
  c.stage_deadline = now + options_.startup_timeout;
}

void Engine::begin_half_open(Connection& c, Listener& listener, Instant now) {
  begin_passive(c, listener, now);
  c.half_open = true;
  ++listener.half_open;
}

// The consumer has answered, or the connection is gone.
void Engine::leave_listener(Connection& c) {
  if (c.listener == nullptr) return;
  --c.listener->pending;
  if (c.half_open) --c.listener->half_open;
  c.half_open = false;
  c.listener = nullptr;
}

void Engine::send_cookie(Listener& listener, const Staged& s, Instant now) {
  const FlowKey key{s.net.dst, s.net.src, s.seg.dst_port, s.seg.src_port};
  const tcp::Config config = tcp_config(key);
  listener.last_cookie = now;
  ++counters_.cookies_sent;
  send_stateless(
      s,
      tcp::cookie_syn_ack(
          cookie_key_, {key.local, key.local_port}, {key.remote, key.remote_port}, s.seg, config,
          static_cast<std::uint16_t>(std::min<std::uint32_t>(config.receive_buffer, 0xffff)), now));
}

// True when the segment answers a cookie and a connection has been made of it.
bool Engine::take_cookie(Listener& listener, const Staged& s, Instant now) {
  if (s.seg.has(tcp::kSyn) || listener.last_cookie.is_never() ||
      now - listener.last_cookie > tcp::kCookieLife * 2 ||
      listener.pending - listener.half_open >= listener.backlog) {
    return false;
  }
  const FlowKey key{s.net.dst, s.net.src, s.seg.dst_port, s.seg.src_port};
  const tcp::Config config = tcp_config(key);
  const auto syn = tcp::syn_of_cookie(cookie_key_, {key.local, key.local_port},
                                      {key.remote, key.remote_port}, s.seg, config, now);
  if (!syn) return false;
  Connection* c = new_connection(key, now);
  if (c == nullptr) return false;
  ++counters_.cookies_taken;
  begin_half_open(*c, listener, now);
  tcp::open_from_cookie(c->tcb, config, syn->ack, *syn, now);
  arm_timer(*c);
  return true;
}

Listener* Engine::listen(std::uint16_t port, int backlog, Error* error) {
  if (stream_ != nullptr) return listen_stream(port, backlog, error);
  const auto taken = [&](std::uint16_t p) {
    return std::any_of(listeners_.begin(), listeners_.end(),
                       [&](const auto& l) { return l->port == p && !l->closed; });
  };
  if (port == 0) {
    for (int i = 0; i < 1000 && (port == 0 || taken(port)); ++i) {
      port = static_cast<std::uint16_t>(rng_.between(49152, 65535));
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
  l->backlog = std::max(backlog, 1);
  return l;
}

void Engine::close_listener(Listener* listener, Instant now) {
  for (auto& slot : slots_) {
    if (slot != nullptr && slot->id != 0 && slot->listener == listener) {
      lose(*slot, Errc::closed, "the listener was closed", now);
    }
  }
  if (stream_ != nullptr) close_listening(*listener);
  std::erase_if(listeners_, [&](const auto& l) { return l.get() == listener; });
  transmit_round(now);
}

Result<void> Engine::accept(ConnectionId connection, verbs::QueuePair& qp,
                            const ConnectParams& params, Instant now) {
  Connection* c = find(connection);
  if (c == nullptr || c->startup == nullptr ||
      c->startup->phase() != verbs::Startup::Phase::WaitConsumer) {
    return Error{Errc::closed, "the connection request is gone (the peer gave up or was reset)"};
  }
  const auto next = verbs::qp_next(qp.state, verbs::QpEvent::StartConnection);
  if (!next.legal || qp.connection != 0) {
    return Error{Errc::wrong_state, "the queue pair already has or had a connection"};
  }
  mpa::Refusal refusal = mpa::Refusal::None;
  const auto reply = c->startup->accept(params.mpa, params.private_data, &refusal);
  leave_listener(*c);
  if (refusal != mpa::Refusal::None && reply.empty()) {
    lose(*c, Errc::rejected, "", now);
    transmit_round(now);
    return Error{Errc::rejected, "the peer's MPA revision is not accepted here (mpa_revision)"};
  }
  if (refusal != mpa::Refusal::None) {
    const std::string why = describe(refusal, params.mpa.policy, c->startup->request().token);
    c->own_stream = std::make_unique<ddp::Stream>(ddp::StreamConfig{}, &memory_);
    c->stream = c->own_stream.get();
    c->stream->sender.queue_raw(reply);
    c->stage = Stage::Lingering;
    c->stage_deadline = now + options_.linger_timeout;
    finish_sending(*c, now);
    enqueue_tx(*c);
    transmit_round(now);
    return Error{Errc::rejected, why};
  }
  qp.state = next.next;
  qp.connection = c->id;
  c->qp = &qp;
  c->stream = &qp.stream;
  c->context.config = params.context;
  if (mutant(Mutant::TypeOfTheDevice)) {
    c->context.config.initiated_as = options_.context.initiated_as;
  }
  if (mutant(Mutant::LimitOfTheDevice)) {
    c->context.config.max_recovery_attempts = options_.context.max_recovery_attempts;
  }
  c->stream->sender.queue_raw(reply);
  const mpa::Agreement agreement = c->startup->agreement();
  c->rtr_pending = agreement.rtr != mpa::kRtrNone;
  full_operation(*c, agreement, now);
  if (c->id == connection && !c->rtr_pending) {
    c->stage_deadline = Instant::never();
    hooks_->on_cm_event({.kind = CmEvent::Kind::Established, .qp = &qp});
  }
  enqueue_tx(*c);
  transmit_round(now);
  return {};
}

void Engine::reject(ConnectionId connection, ByteView private_data, Instant now) {
  Connection* c = find(connection);
  if (c == nullptr || c->startup == nullptr ||
      c->startup->phase() != verbs::Startup::Phase::WaitConsumer) {
    return;
  }
  const auto reply = c->startup->reject(private_data);
  leave_listener(*c);
  c->own_stream = std::make_unique<ddp::Stream>(ddp::StreamConfig{}, &memory_);
  c->stream = c->own_stream.get();
  c->stream->sender.queue_raw(reply);
  c->startup.reset();
  c->stage = Stage::Lingering;
  c->stage_deadline = now + options_.linger_timeout;
  finish_sending(*c, now);
  enqueue_tx(*c);
  transmit_round(now);
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

// ---- active side
// ----------------------------------------------------------------------------------

Result<void> Engine::choose_path(const SocketAddress& to, FlowKey* key, Instant now) {
  (void)now;
  const auto source = interface_.choose_source(to.ip);
  if (!source) {
    return Error{Errc::unreachable, "no route to " + to.ip.to_string() +
                                        ": no own address on its network and no gateway (set "
                                        "'address' or 'gateway')"};
  }
  key->local = *source;
  key->remote = to.ip;
  key->remote_port = to.port;
  key->local_port = choose_port(*source, to);
  if (key->local_port == 0) return Error{Errc::in_use, "no free local port"};
  return {};
}

std::uint16_t Engine::choose_port(const IpAddress& local, const SocketAddress& to) {
  for (int i = 0; i < 4096; ++i) {
    const auto port = static_cast<std::uint16_t>(rng_.between(32768, 60999));
    if (flows_.find({local, to.ip, port, to.port}) == nullptr) return port;
  }
  return 0;
}

Result<void> Engine::connect(verbs::QueuePair& qp, const SocketAddress& to,
                             const ConnectParams& params, Instant now) {
  const auto next = verbs::qp_next(qp.state, verbs::QpEvent::StartConnection);
  if (!next.legal || qp.connection != 0) {
    return Error{Errc::wrong_state, "the queue pair already has or had a connection"};
  }
  FlowKey key;
  std::unique_ptr<StreamLink> link;
  if (stream_ != nullptr) {
    auto opened = open_link(to, &key);
    if (!opened) return opened.error();
    link = std::move(*opened);
  } else if (auto path = choose_path(to, &key, now); !path) {
    return path;
  }
  Connection* c = new_connection(key, now);
  if (c == nullptr) return Error{Errc::no_memory, "the connection table is full"};
  qp.state = next.next;
  qp.connection = c->id;
  c->qp = &qp;
  c->stream = &qp.stream;
  c->context.config = params.context;
  c->startup =
      std::make_unique<verbs::Startup>(verbs::Startup::active(params.mpa, params.private_data));
  c->stage_deadline = now + params.timeout;
  if (link != nullptr) {
    adopt_link(*c, std::move(link));
    arm_timer(*c);
    return {};
  }
  tcp::open_active(c->tcb, tcp_config(key),
                   tcp::initial_sequence(isn_key_, {key.local, key.local_port},
                                         {key.remote, key.remote_port}, now),
                   now);
  enqueue_tx(*c);
  arm_timer(*c);
  transmit_round(now);
  return {};
}

// ---- start-up
// -------------------------------------------------------------------------------------

void Engine::on_tcp_established(Connection& c, Instant now) {
  c.stage = Stage::Startup;
  if (c.half_open) --c.listener->half_open;
  c.half_open = false;
  drop_undelivered(c);
  update_receive_room(c, now);
  if (c.startup != nullptr) {
    c.startup->set_first_sns(c.tcb.snd.iss.value() + 1, c.tcb.rcv.irs.value() + 1);
  }
  if (c.startup != nullptr && c.startup->is_active()) {
    c.stream->sender.queue_raw(c.startup->request_bytes());
    enqueue_tx(c);
  }
}

// What has come in order and not been consumed, as far as a start-up frame may reach.
ByteView Engine::startup_octets(Connection& c, std::span<std::uint8_t> scratch) const {
  if (c.link != nullptr) {
    const ByteView there = c.link->inbox.octets();
    return there.first(std::min(there.size(), scratch.size()));
  }
  const std::uint64_t there = c.tcb.rcv.holes.rcv_nxt() - c.buffer.read_position();
  const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(there, scratch.size()));
  if (n != 0) c.buffer.copy(0, n, scratch.data());
  return scratch.first(n);
}

void Engine::consume_octets(Connection& c, std::uint32_t n) {
  if (c.link != nullptr) {
    c.link->inbox.consume(n);
  } else {
    c.buffer.consume(c.buffer.read_position() + n);
  }
}

void Engine::run_startup(Connection& c, Instant now) {
  if (c.startup == nullptr) return;
  std::uint8_t scratch[mpa::kFrameHeader + mpa::kMaxPrivateData];
  const ByteView there = startup_octets(c, scratch);
  if (there.empty()) return;
  const verbs::Startup::Step step = c.startup->feed(there);
  consume_octets(c, step.consumed);
  switch (step.what) {
    case verbs::Startup::What::NeedMore:
      return;
    case verbs::Startup::What::Request:
      c.stage_deadline = Instant::never();  // the consumer may take its time
      hooks_->on_cm_event(
          {.kind = CmEvent::Kind::ConnectRequest, .listener = c.listener, .connection = c.id});
      return;
    case verbs::Startup::What::Established: {
      const mpa::Agreement agreement = c.startup->agreement();
      const ByteView pd = c.startup->reply().private_view();
      const std::string private_data(reinterpret_cast<const char*>(pd.data()), pd.size());
      verbs::QueuePair* qp = c.qp;
      c.stage_deadline = Instant::never();
      // First: who hears of it may post at once, from another thread (E-28).
      qp->state = verbs::qp_next(qp->state, verbs::QpEvent::StreamBound).next;
      hooks_->on_cm_event(
          {.kind = CmEvent::Kind::Established, .qp = qp, .private_data = private_data});
      full_operation(c, agreement, now);
      enqueue_tx(c);
      return;
    }
    case verbs::Startup::What::Rejected: {
      const ByteView pd = c.startup->reply().private_view();
      CmEvent e{.kind = CmEvent::Kind::ConnectFailed,
                .qp = c.qp,
                .code = Errc::rejected,
                .message = step.refusal == mpa::Refusal::PolicyDiffers
                               ? describe(step.refusal, c.startup->options().policy,
                                          c.startup->reply().token)
                               : "the peer rejected the connection",
                .private_data = std::string(reinterpret_cast<const char*>(pd.data()), pd.size())};
      verbs::QueuePair* qp = c.qp;
      c.qp = nullptr;
      c.stream = nullptr;
      abort_transport(c, now);
      qp->connection = 0;
      qp->state = verbs::QpState::Error;
      flush_qp(*qp, ddp::Status::Flushed);
      c.stage = Stage::Lingering;
      c.stage_deadline = now + options_.linger_timeout;
      enqueue_tx(c);
      hooks_->on_cm_event(std::move(e));
      return;
    }
    case verbs::Startup::What::RetryRevision1:
      retry_as_revision1(c, now);
      return;
    case verbs::Startup::What::Fail:
      if (step.violation == ddp::Violation::MpaStartup) {
        lose(c, Errc::protocol,
             step.refusal == mpa::Refusal::PolicyUnknown
                 ? describe(step.refusal, c.startup->options().policy, {})
                 : "the peer's MPA start-up frame is malformed or of an unknown revision",
             now);
      } else {  // an FPDU is possible: say why by Terminate (RFC 6581 9.x)
        set_send_framing(c, c.startup->send_policy());
        c.stream->sender.start(true);
        raise_terminate(c, step.violation, {}, now);
      }
      return;
  }
}

// How our FPDUs look; they begin behind our start-up frame.
void Engine::set_send_framing(Connection& c, mpa::Policy policy) {
  c.stream->sender.set_framing(
      mpa::make_framing(policy, c.tcb.snd.iss.value() + 1, c.startup->sent_octets()));
}

// From here on only FPDUs travel (StartNum known). Octets glued behind the start-up frame are
// taken as SLOW until they are parsed (E-1).
void Engine::full_operation(Connection& c, const mpa::Agreement& agreement, Instant now) {
  const bool active = c.startup->is_active();
  set_send_framing(c, agreement.send);
  c.framing = mpa::make_framing(agreement.receive, c.tcb.rcv.irs.value() + 1,
                                c.buffer.read_position().value());
  c.extractor.set_framing(c.framing);
  c.startup.reset();
  c.stage = Stage::Full;
  c.qp->state = verbs::qp_next(c.qp->state, verbs::QpEvent::StreamBound).next;
  c.context.config.crc = agreement.crc;
  c.context.startup = false;
  c.context.upgrade_needed = c.context.config.upgrade_after;
  c.context.fast_since = now;
  if (c.link != nullptr) c.context.config.initiated_as = fastpath::ConnectionType::Slow;  // E-31
  c.extractor.set_crc(agreement.crc);
  c.stream->set_limits(agreement.ird, agreement.ord);
  const bool fast =
      agreement.crc && c.context.config.initiated_as == fastpath::ConnectionType::Fast;
  c.residue = fast && !c.buffer.empty();
  c.context.type =
      fast && !c.residue ? fastpath::ConnectionType::Fast : fastpath::ConnectionType::Slow;
  if (active) {
    c.first_fpdu_seen = true;
    c.stream->sender.start(agreement.crc);
    if (agreement.rtr != mpa::kRtrNone) {
      std::uint8_t ulpdu[ddp::kMaxHeader];
      const std::uint32_t n = build_rtr(agreement.rtr, *c.stream, ulpdu);
      c.stream->sender.queue_ulpdu({ulpdu, n});
    }
  }
  update_receive_room(c, now);
  if (c.link != nullptr) {
    drain_stream(c, now);
    if (c.link != nullptr && c.link->readable) enqueue_read(c);  // held back until now
  } else if (!c.buffer.empty()) {
    drain_reassembly(c, kNoBudget, now);
  }
}

// The responder has received a valid FPDU: it may send (RFC 5044 7.1.3), and a peer-to-peer
// connection is established (RFC 6581 9.2).
void Engine::first_fpdu(Connection& c, Instant now) {
  if (c.first_fpdu_seen || c.stage == Stage::Terminated) return;
  c.first_fpdu_seen = true;
  c.stream->sender.start(c.context.config.crc);
  if (c.rtr_pending) {
    c.rtr_pending = false;
    c.stage_deadline = Instant::never();
    hooks_->on_cm_event({.kind = CmEvent::Kind::Established, .qp = c.qp});
  }
  enqueue_tx(c);
  (void)now;
}

// The peer ended the connection while we waited for the Reply to an enhanced Request.
bool Engine::refuses_revision2(const Connection& c) const {
  return c.startup != nullptr && c.startup->is_active() && c.startup->options().revision == 2 &&
         c.startup->phase() == verbs::Startup::Phase::WaitReply;
}

// E-35: once more as RFC 5044 alone, on a new TCP connection.
void Engine::retry_as_revision1(Connection& c, Instant now) {
  verbs::QueuePair* qp = c.qp;
  ConnectParams params;
  params.context = c.context.config;
  params.mpa = c.startup->options();
  params.mpa.revision = 1;
  const ByteView pd = c.startup->request().private_view();
  params.private_data.assign(pd.begin(), pd.end());
  params.timeout = c.stage_deadline.is_never() ? options_.startup_timeout : c.stage_deadline - now;
  const SocketAddress to{c.key.remote, c.key.remote_port};
  c.qp = nullptr;
  c.stream = nullptr;
  c.startup.reset();
  c.stage = Stage::Lingering;
  c.stage_deadline = now + options_.linger_timeout;
  abort_transport(c, now);
  enqueue_tx(c);
  qp->connection = 0;
  qp->state = verbs::QpState::Init;
  qp->stream.sender.forget_startup();
  if (auto again = connect(*qp, to, params, now); !again) {
    qp->state = verbs::QpState::Error;
    flush_qp(*qp, ddp::Status::Flushed);
    hooks_->on_cm_event({.kind = CmEvent::Kind::ConnectFailed,
                         .qp = qp,
                         .code = again.error().code,
                         .message = again.error().message});
  }
}

// ---- the end
// ----------------------------------------------------------------------------------------

void Engine::raise_terminate(Connection& c, ddp::Violation v, ByteView offending, Instant now) {
  if (c.stage == Stage::Terminated || c.qp == nullptr) return;
  ++c.counters.terminates_sent;
  std::uint8_t ulpdu[ddp::kMaxTerminate];
  const std::uint32_t n = ddp::build_terminate(v, offending, ulpdu);
  if (!c.first_fpdu_seen) c.stream->sender.start(c.context.config.crc);
  c.first_fpdu_seen = true;
  c.stream->sender.stop();
  c.stream->sender.queue_ulpdu({ulpdu, n});
  const ddp::ViolationRow& row = ddp::violation_row(v);
  c.failure = "the peer broke the protocol: " + std::string(row.name) + " (Terminate " +
              std::to_string(row.layer) + "/" + std::to_string(row.etype) + "/" +
              std::to_string(row.code) + " sent)";
  if (v == ddp::Violation::LocalCatastrophic) c.failure = "a local error ended the stream";
  c.stage = Stage::Terminated;
  c.stage_deadline = now + options_.linger_timeout;
  drop_undelivered(c);
  c.qp->state = verbs::qp_next(c.qp->state, verbs::QpEvent::LocalViolation).next;
  flush_qp(*c.qp, ddp::flush_status(v));
  hooks_->on_cm_event(
      {.kind = CmEvent::Kind::Failed, .qp = c.qp, .code = Errc::protocol, .message = c.failure});
  enqueue_tx(c);
  arm_timer(c);
}

void Engine::on_terminate_received(Connection& c, Instant now) {
  if (c.stage == Stage::Terminated || c.qp == nullptr) return;
  ++c.counters.terminates_received;
  const ddp::TerminateInfo info = c.stream->terminate.info;
  c.failure = describe(info);
  c.stage = Stage::Terminated;
  c.stage_deadline = now + options_.linger_timeout;
  c.qp->state = verbs::qp_next(c.qp->state, verbs::QpEvent::TerminateReceived).next;
  c.stream->sender.stop();
  // Layer RDMAP or DDP with a protection type: the peer refused access to its memory.
  const bool protection = info.etype == 1 && info.layer <= 1;
  flush_qp(*c.qp, protection ? ddp::Status::RemoteAccess : ddp::Status::RemoteOperation);
  hooks_->on_cm_event(
      {.kind = CmEvent::Kind::Failed, .qp = c.qp, .code = Errc::reset, .message = c.failure});
  enqueue_tx(c);
  arm_timer(c);
}

void Engine::disconnect(verbs::QueuePair& qp, Instant now) {
  Connection* c = find(qp.connection);
  if (c == nullptr) return;
  if (c->stage == Stage::Opening || c->stage == Stage::Startup) {
    lose(*c, Errc::closed, "closed before it was established", now);
    transmit_round(now);
    return;
  }
  if (c->stage != Stage::Full) return;
  c->stage = Stage::Closing;
  c->stage_deadline = now + options_.linger_timeout;
  qp.state = verbs::qp_next(qp.state, verbs::QpEvent::CloseRequested).next;
  enqueue_tx(*c);
  arm_timer(*c);
  transmit_round(now);
}

// Our FIN goes when nothing is left to be cut into segments.
void Engine::try_finish_close(Connection& c, Instant now) {
  if (c.fin_queued || c.stream == nullptr) return;
  if (c.stage == Stage::Closing && !c.stream->sender.drained()) return;
  if (c.stage == Stage::Terminated && c.stream->sender.available() > sent_end(c)) return;
  c.fin_queued = true;
  finish_sending(c, now);
  enqueue_tx(c);
}

void Engine::on_fin(Connection& c, Instant now) {
  c.fin_received = true;
  switch (c.stage) {
    case Stage::Opening:
    case Stage::Startup:
      // The frame and the FIN may have come in one segment (a rejecting peer closes at once).
      if (c.stage == Stage::Startup) run_startup(c, now);
      if (c.id == 0 || c.stage != Stage::Startup) return;
      // E-35: a peer that knows only revision 1 closes without a Reply.
      if (refuses_revision2(c)) {
        retry_as_revision1(c, now);
        return;
      }
      lose(c, Errc::refused, "the peer closed the connection during MPA start-up", now);
      return;
    case Stage::Full: {
      // 5.1: with nothing outstanding an orderly end, else an abnormal one.
      const bool partial = has_undelivered(c);
      if (!c.stream->sender.idle() || partial) {
        lose(c, Errc::reset, "the peer closed the connection with work outstanding", now);
        return;
      }
      c.stage = Stage::Closing;
      c.stage_deadline = now + options_.linger_timeout;
      c.qp->state = verbs::qp_next(c.qp->state, verbs::QpEvent::CloseRequested).next;
      try_finish_close(c, now);
      return;
    }
    case Stage::Closing:
    case Stage::Terminated:
      try_finish_close(c, now);
      return;
    case Stage::Lingering:
      if (!c.fin_queued) {
        c.fin_queued = true;
        finish_sending(c, now);
      }
      enqueue_tx(c);
      return;
  }
}

// TCP has finished (TIME-WAIT counts): the queue pair is done, TCP lingers alone.
void Engine::on_closed(Connection& c, Instant now) {
  if (c.qp != nullptr) {
    const bool clean = c.stage == Stage::Closing && c.tcb.close_reason == tcp::CloseReason::None;
    if (clean) {
      detach_qp(c, CmEvent::Kind::Disconnected, Errc::closed, "");
    } else if (c.stage == Stage::Terminated) {
      detach_qp(c, CmEvent::Kind::Disconnected, Errc::reset, c.failure);
    } else {
      Errc code = Errc::reset;
      std::string why = "the connection was lost";
      switch (c.tcb.close_reason) {
        case tcp::CloseReason::Refused:
          code = Errc::refused;
          why = "connection refused by the peer (nobody listens on that port)";
          break;
        case tcp::CloseReason::TimedOut:
          code = Errc::timed_out;
          why = c.stage == Stage::Opening
                    ? "no answer from the peer: connecting timed out"
                    : "the peer stopped answering: TCP gave up retransmitting";
          break;
        case tcp::CloseReason::Unreachable:
          code = Errc::unreachable;
          why = "the peer is unreachable";
          break;
        default:
          break;
      }
      lose(c, code, std::move(why), now);
      return;
    }
  }
  if (transport_closed(c)) {
    free_connection(c);
  } else {
    c.stage = Stage::Lingering;
    c.stage_deadline = Instant::never();
    arm_timer(c);
  }
}

// The stream is gone (or goes now, by RST): flush and report; TCP sends its RST if it owes one.
void Engine::lose(Connection& c, Errc code, std::string why, Instant now) {
  ++counters_.connections_failed;
  const bool was_established =
      c.stage != Stage::Opening && c.stage != Stage::Startup && !c.rtr_pending;
  abort_transport(c, now);
  if (c.qp != nullptr) {
    detach_qp(c, was_established ? CmEvent::Kind::Failed : CmEvent::Kind::ConnectFailed, code,
              std::move(why));
  }
  leave_listener(c);
  c.startup.reset();
  c.stream = nullptr;
  c.stage = Stage::Lingering;
  if (c.link != nullptr) {
    free_connection(c);
    return;
  }
  if (c.tcb.state == tcp::State::Closed) {
    const tcp::SendPlan plan = tcp::plan_send(c.tcb, {}, now);
    if (plan.kind == tcp::Send::Rst && (c.routed || route_quietly(c, now)))
      send_segment(c, plan, now);
    free_connection(c);
    return;
  }
  c.stage_deadline = now + Duration::s(1);
  enqueue_tx(c);
  arm_timer(c);
}

void Engine::detach_qp(Connection& c, CmEvent::Kind kind, Errc code, std::string why) {
  verbs::QueuePair* qp = c.qp;
  if (qp == nullptr) return;
  last_stats_[qp->number()] = connection_stats(c);
  stream_ended(*c.stream);
  c.qp = nullptr;
  c.stream = nullptr;
  qp->connection = 0;
  qp->state = verbs::QpState::Error;
  flush_qp(*qp, ddp::Status::Flushed);
  hooks_->on_cm_event({.kind = kind, .qp = qp, .code = code, .message = std::move(why)});
}

void Engine::abort(verbs::QueuePair& qp, Instant now) {
  if (Connection* c = find(qp.connection)) {
    lose(*c, Errc::closed, "aborted by the local consumer", now);
    transmit_round(now);
  }
}

void Engine::flush_qp(verbs::QueuePair& qp, ddp::Status first) {
  ddp::flush(qp.stream, first, [&](const ddp::Completion& done) { post_completion(qp, done); });
  if (qp.stream.rq.shared() == nullptr || qp.last_receive_told) return;
  // Receives nobody has bound stay in the shared queue for others; this one takes no more.
  qp.last_receive_told = true;
  hooks_->on_cm_event({.kind = CmEvent::Kind::LastReceive, .qp = &qp});
}

void Engine::flush_posted(verbs::QueuePair& qp) {
  if (verbs::flushes_posts(qp.state)) flush_qp(qp, ddp::Status::Flushed);
}

void Engine::post_completion(verbs::QueuePair& qp, const ddp::Completion& completion) {
  verbs::CompletionQueue* cq = completion.receive ? qp.receive_cq : qp.send_cq;
  verbs::Cqe cqe;
  cqe.completion = completion;
  cqe.qp_number = qp.number();
  if (cq->push(cqe) == verbs::CompletionQueue::Notify::Yes) hooks_->on_completion(cq);
}

void Engine::post_completion(verbs::QueuePair& qp, const ddp::StoredSends& sends) {
  if (qp.receive_cq->push(sends, qp.number()) == verbs::CompletionQueue::Notify::Yes) {
    hooks_->on_completion(qp.receive_cq);
  }
}

}  // namespace urnic::engine
