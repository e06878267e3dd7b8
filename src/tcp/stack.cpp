#include "tcp/stack.h"

#include <algorithm>
#include <limits>

#include "net/header_template.h"
#include "tcp/isn.h"
#include "tcp/listen.h"
#include "tcp/stack_socket.h"

namespace urnic::tcp {
namespace {

constexpr std::size_t kChunk = 4096;
constexpr std::size_t kKeptChunks = 64;
constexpr unsigned kPortAttempts = 1024;

SipKey key_from(Rng& rng) {
  const std::uint64_t k0 = rng.next();
  return {k0, rng.next()};
}

Status status_of(CloseReason why) {
  switch (why) {
    case CloseReason::None:
      return Status::Ok;
    case CloseReason::Refused:
      return Status::Refused;
    case CloseReason::Reset:
    case CloseReason::Aborted:
      return Status::Reset;
    case CloseReason::TimedOut:
      return Status::TimedOut;
    case CloseReason::Unreachable:
      return Status::Unreachable;
  }
  return Status::Reset;
}

unsigned common_bits(const IpAddress& a, const IpAddress& b) {
  const ByteView x = a.bytes(), y = b.bytes();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto differ = static_cast<std::uint8_t>(x[i] ^ y[i]);
    if (differ != 0)
      return static_cast<unsigned>(8 * i) + static_cast<unsigned>(std::countl_zero(differ));
  }
  return a.bits();
}

}  // namespace

Stack::Entry::Entry(Stack& stack, Instant now) : stack_(stack) {
  stack_.last_now_ = now_ = std::max(now, stack_.last_now_);
  ++stack_.depth_;
  stack_.fire(now_, false);
}

Stack::Entry::~Entry() {
  --stack_.depth_;
  stack_.fire(Instant::from_ns(std::numeric_limits<std::int64_t>::min()), false);
  stack_.deliver();
}

Stack::Stack(StackConfig config)
    : config_(std::move(config)),
      rng_(config_.seed),
      isn_key_(key_from(rng_)),
      cookie_key_{isn_key_.k1, isn_key_.k0 ^ 0x636f6f6b69657321},
      challenge_(config_.challenge_acks),
      pool_(kChunk, std::numeric_limits<std::size_t>::max(), kKeptChunks),
      flows_(FlowHash{key_from(rng_)}) {}

Stack::~Stack() = default;

void Stack::add_address(const IpAddress& address) {
  config_.addresses.push_back(address);
}

void Stack::set_sink(Sink sink, void* context) {
  sink_ = sink;
  sink_context_ = context;
  deliver();
}

void Stack::set_on_change(OnChange on_change, void* context) {
  on_change_ = on_change;
  change_context_ = context;
}

// ---- sockets and handles
// --------------------------------------------------------------------------

Endpoint Stack::handle(const Socket& s) const {
  return static_cast<Endpoint>(std::uint64_t{s.generation} << 32 | (std::uint64_t{s.slot} + 1));
}

Stack::Socket* Stack::find(Endpoint e) const {
  const auto v = static_cast<std::uint64_t>(e);
  const std::uint64_t slot = (v & 0xffffffff) - 1;
  if ((v & 0xffffffff) == 0 || slot >= sockets_.size()) return nullptr;
  Socket* s = sockets_[slot].get();
  return s != nullptr && s->generation == v >> 32 && s->has_handle ? s : nullptr;
}

Stack::Socket& Stack::new_socket() {
  std::uint32_t slot;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else {
    slot = static_cast<std::uint32_t>(sockets_.size());
    sockets_.emplace_back();
    generations_.push_back(0);
  }
  sockets_[slot] = std::make_unique<Socket>(&pool_, config_.options);
  Socket& s = *sockets_[slot];
  s.slot = slot;
  s.generation = ++generations_[slot];
  ++live_;
  return s;
}

void Stack::free_socket(Socket& s) {
  const std::uint32_t slot = s.slot;
  sockets_[slot].reset();
  free_.push_back(slot);
  --live_;
}

Endpoint Stack::open() {
  return handle(new_socket());
}

std::size_t Stack::first_listener(std::uint16_t port) const {
  const auto it =
      std::partition_point(listeners_.begin(), listeners_.end(),
                           [&](std::uint32_t slot) { return sockets_[slot]->local.port < port; });
  return static_cast<std::size_t>(it - listeners_.begin());
}

bool Stack::port_in_use(const SocketAddress& local) const {
  for (std::size_t i = first_listener(local.port); i < listeners_.size(); ++i) {
    const SocketAddress& other = sockets_[listeners_[i]]->local;
    if (other.port != local.port) return false;
    if (other.ip.is_v6() != local.ip.is_v6()) continue;
    if (other.ip.is_any() || local.ip.is_any() || other.ip == local.ip) return true;
  }
  return false;
}

Status Stack::bind(Endpoint e, const SocketAddress& local) {
  Socket* s = find(e);
  if (s == nullptr || s->kind != Socket::Kind::Fresh) return Status::Invalid;
  if (!local.ip.is_any() && std::find(config_.addresses.begin(), config_.addresses.end(),
                                      local.ip) == config_.addresses.end()) {
    return Status::NoAddress;
  }
  s->local = local;
  return Status::Ok;
}

Status Stack::listen(Endpoint e, unsigned backlog) {
  Socket* s = find(e);
  if (s == nullptr || s->kind != Socket::Kind::Fresh || backlog == 0) return Status::Invalid;
  if (s->local.port == 0) {
    s->local.port = choose_port(s->local.ip, {});
    if (s->local.port == 0) return Status::AddressInUse;
  }
  if (port_in_use(s->local)) return Status::AddressInUse;
  s->kind = Socket::Kind::Listener;
  s->backlog = backlog;
  listeners_.insert(listeners_.begin() + static_cast<std::ptrdiff_t>(first_listener(s->local.port)),
                    s->slot);
  return Status::Ok;
}

Endpoint Stack::accept(Endpoint e, SocketAddress* peer, Instant now) {
  const Entry entry(*this, now);
  Socket* s = find(e);
  if (s == nullptr || s->kind != Socket::Kind::Listener || s->ready.empty()) return Endpoint::None;
  Socket& child = *sockets_[s->ready.front()];
  s->ready.pop_front();
  child.pending = false;
  child.has_handle = true;
  if (peer != nullptr) *peer = child.remote;
  return handle(child);
}

std::optional<IpAddress> Stack::choose_source(const IpAddress& remote) const {
  std::optional<IpAddress> best;
  for (const IpAddress& own : config_.addresses) {
    if (own.is_v6() != remote.is_v6()) continue;
    if (!best || common_bits(own, remote) > common_bits(*best, remote)) best = own;
  }
  return best;
}

// 0 when every port is taken. RFC 6056: at random, so that nobody can tell the next one.
std::uint16_t Stack::choose_port(const IpAddress& local, const SocketAddress& remote) {
  const auto taken = [&](std::uint16_t port) {
    return port == 0 || port_in_use({local, port}) ||
           flows_.contains({local, remote.ip, port, remote.port});
  };
  if (config_.ephemeral_port) {
    for (unsigned attempt = 0; attempt < kPortAttempts; ++attempt) {
      const std::uint16_t port = config_.ephemeral_port(local, remote, attempt);
      if (!taken(port)) return port;
    }
    return 0;
  }
  if (config_.port_first > config_.port_last) return 0;
  const std::uint32_t span = config_.port_last - config_.port_first + 1u;
  const auto start = static_cast<std::uint32_t>(rng_.below(span));
  for (std::uint32_t i = 0; i < span; ++i) {
    const auto port = static_cast<std::uint16_t>(config_.port_first + (start + i) % span);
    if (!taken(port)) return port;
  }
  return 0;
}

Config Stack::connection_config(const Socket& s, const IpAddress& local,
                                const IpAddress& remote) const {
  Config c = s.options.tcp;
  c.ip_header = static_cast<std::uint8_t>(net::ip_header_size(remote));
  c.mss = static_cast<std::uint16_t>(s.options.mtu - c.ip_header - kHeaderMin);
  c.ts_offset = config_.ts_offset ? config_.ts_offset(local, remote)
                                  : timestamp_offset(isn_key_, local, remote);
  return c;
}

Seq Stack::choose_isn(const SocketAddress& local, const SocketAddress& remote, Instant now) {
  return config_.isn ? config_.isn(local, remote, now)
                     : initial_sequence(isn_key_, local, remote, now);
}

Status Stack::connect(Endpoint e, const SocketAddress& remote, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return Status::Invalid;
  if (s->kind == Socket::Kind::Stream) {
    if (s->dead) return Status::Invalid;
    return s->was_connected ? Status::AlreadyConnected : Status::InProgress;
  }
  if (remote.port == 0 || remote.ip.is_any() || remote.ip.is_multicast() ||
      remote.ip.is_broadcast()) {
    return Status::Invalid;
  }
  SocketAddress local = s->local;
  if (local.ip.is_any()) {
    const auto source = choose_source(remote.ip);
    if (!source) return Status::NoAddress;
    local.ip = *source;
  }
  if (local.ip.is_v6() != remote.ip.is_v6()) return Status::NoAddress;
  if (local.port == 0) local.port = choose_port(local.ip, remote);
  const FlowKey key{local.ip, remote.ip, local.port, remote.port};
  if (local.port == 0 || !flows_.insert(key, s->slot).inserted) return Status::AddressInUse;
  s->kind = Socket::Kind::Stream;
  s->local = local;
  s->remote = remote;
  open_active(s->tcb, connection_config(*s, local.ip, remote.ip), choose_isn(local, remote, now),
              now);
  ++counters_.opened_active;
  pump(*s, now);
  settle(*s, now);
  return Status::InProgress;
}

// ---- bytes
// ------------------------------------------------------------------------------------------

IoResult Stack::read(Endpoint e, MutBytes dst, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr) return {};
  const IoResult seen = peek(e, dst);
  if (seen.status != Status::Ok) {
    if (s->error != Status::Ok) s->error = Status::Ok;  // told once
    return seen;
  }
  if (seen.bytes == 0) return seen;
  s->rx.advance(s->rx.base() + seen.bytes);
  if (s->open()) {
    if (set_receive_room(s->tcb, s->receive_room(), now)) emit(*s, plan_ack(s->tcb), now);
    settle(*s, now);
  }
  return seen;
}

IoResult Stack::peek(Endpoint e, MutBytes dst, std::size_t skip) const {
  const Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return {};
  if (s->kind == Socket::Kind::Fresh) return {Status::NotConnected, 0};
  const std::uint64_t unread = s->unread();
  if (unread > skip) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(dst.size(), unread - skip));
    s->rx.read(s->rx.base() + skip, dst.first(n));
    return {Status::Ok, n};
  }
  if (s->error != Status::Ok) return {s->error, 0};
  if (s->dead || s->read_closed || s->tcb.rcv.fin_taken) return {Status::EndOfStream, 0};
  if (dst.empty()) return {Status::Ok, 0};
  return {Status::WouldBlock, 0};
}

IoResult Stack::write(Endpoint e, ByteView src, Instant at, bool more) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return {};
  if (s->kind == Socket::Kind::Fresh) return {Status::NotConnected, 0};
  if (s->error != Status::Ok) return {std::exchange(s->error, Status::Ok), 0};
  if (s->dead || s->write_closed) return {Status::BrokenPipe, 0};
  if (!synchronized(s->tcb.state)) return {Status::WouldBlock, 0};
  const std::size_t n = s->tx.append(src);
  // A write that could not be taken whole is not the end of anything.
  s->more = more && n == src.size();
  if (n != 0 && n == src.size() && !more && s->options.psh_rule == PshRule::EndOfWrite) {
    s->write_ends.push_back(s->tx.end());
  }
  pump(*s, now);
  settle(*s, now);
  if (n == 0 && !src.empty()) return {Status::WouldBlock, 0};
  return {Status::Ok, n};
}

Status Stack::push(Endpoint e, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return Status::Invalid;
  if (!s->open()) return Status::NotConnected;
  s->more = false;
  pump(*s, now);
  settle(*s, now);
  return Status::Ok;
}

// ---- the end
// ----------------------------------------------------------------------------------------

Status Stack::shutdown_write(Endpoint e, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return Status::Invalid;
  if (!s->open() || s->tcb.state == State::SynSent) return Status::NotConnected;
  s->write_closed = true;
  s->more = false;
  shutdown_send(s->tcb, now);
  pump(*s, now);
  settle(*s, now);
  return Status::Ok;
}

Status Stack::shutdown_read(Endpoint e, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return Status::Invalid;
  if (s->kind != Socket::Kind::Stream) return Status::NotConnected;
  s->read_closed = true;
  s->rx.advance(s->tcb.rcv.holes.rcv_nxt().value());
  if (s->open() && set_receive_room(s->tcb, s->receive_room(), now))
    emit(*s, plan_ack(s->tcb), now);
  if (s->open()) settle(*s, now);
  return Status::Ok;
}

void Stack::reset_now(Socket& s, Instant now) {
  tcp::abort(s.tcb, now);
  pump(s, now);
}

// The owner is gone; the connection ends by itself.
void Stack::let_go(Socket& s, Instant now) {
  s.has_handle = false;
  s.orphan = true;
  s.more = false;
  const bool unread = !s.read_closed && s.unread() != 0;
  if (!synchronized(s.tcb.state) || unread || s.options.linger == 0) {
    reset_now(s, now);  // RFC 9293 3.10.4, RFC 2525 2.17: the peer must learn that data was lost
    return;
  }
  // Nobody is left to notice that a peer stopped reading.
  if (s.tcb.config.user_timeout == Duration::zero()) {
    s.tcb.config.user_timeout = s.options.orphan_timeout;
  }
  shutdown_send(s.tcb, now);
  pump(s, now);
}

void Stack::close_listener(Socket& s, Instant now) {
  std::erase(listeners_, s.slot);
  for (const auto& other : sockets_) {
    if (other == nullptr || !other->pending || other->parent_slot != s.slot ||
        other->parent_generation != s.generation) {
      continue;
    }
    other->pending = false;
    reset_now(*other, now);
    settle(*other, now);
  }
}

Status Stack::close(Endpoint e, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr) return Status::Invalid;
  if (s->kind == Socket::Kind::Listener) close_listener(*s, now);
  if (!s->open()) {
    free_socket(*s);
    return Status::Ok;
  }
  let_go(*s, now);
  settle(*s, now);
  return Status::Ok;
}

Status Stack::abort(Endpoint e, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr) return Status::Invalid;
  if (s->kind == Socket::Kind::Listener) close_listener(*s, now);
  if (!s->open()) {
    free_socket(*s);
    return Status::Ok;
  }
  s->has_handle = false;
  s->orphan = true;
  reset_now(*s, now);
  settle(*s, now);
  return Status::Ok;
}

// After anything happened to a connection: is it over, and when does it want to be woken? The
// socket may be gone afterwards.
void Stack::settle(Socket& s, Instant now) {
  if (s.tcb.state == State::Closed && !s.dead) {
    s.dead = true;
    flows_.erase({s.local.ip, s.remote.ip, s.local.port, s.remote.port});
    if (const Status why = status_of(s.tcb.close_reason); why != Status::Ok && s.has_handle) {
      s.error = why;
      note(s, kError);
    }
    if (s.pending) {
      Socket* parent = sockets_[s.parent_slot].get();
      if (parent != nullptr && parent->generation == s.parent_generation) {
        if (!s.was_connected) {
          --parent->half_open;
        } else {
          for (std::size_t n = parent->ready.size(); n > 0; --n) {
            const std::uint32_t slot = parent->ready.front();
            parent->ready.pop_front();
            if (slot != s.slot) parent->ready.push_back(slot);
          }
        }
      }
      s.pending = false;
    }
    s.tx.reset(s.tx.end());
    s.tx.release_memory();
  }
  if (s.dead) {
    if (!s.has_handle) free_socket(s);
    return;
  }
  if (s.tcb.state != State::FinWait2) {
    s.orphan_deadline = Instant::never();
  } else if (s.orphan && s.orphan_deadline.is_never() && s.options.fin_wait_2 != Duration::zero()) {
    s.orphan_deadline = now + s.options.fin_wait_2;
  }
  arm(s);
}

// ---- options
// ----------------------------------------------------------------------------------------

Status Stack::set_default(Option o, std::int64_t value) {
  return tcp::set_option(config_.options, o, value) ? Status::Ok : Status::Invalid;
}

Status Stack::set_option(Endpoint e, Option o, std::int64_t value, Instant at) {
  const Entry entry(*this, at);
  Socket* s = find(e);
  if (s == nullptr) return Status::Invalid;
  return apply_option(*s, o, value, entry.now());
}

Status Stack::apply_option(Socket& s, Option o, std::int64_t value, Instant now) {
  if (s.kind == Socket::Kind::Stream && !changeable_when_open(o)) return Status::Invalid;
  if (!tcp::set_option(s.options, o, value)) return Status::Invalid;
  if (o == Option::SendBuffer) s.tx.set_capacity(s.options.send_buffer);
  if (o == Option::ReceiveBuffer) s.rx.set_capacity(s.options.tcp.receive_buffer);
  if (!s.open()) return Status::Ok;
  Config& live = s.tcb.config;
  Config next = s.options.tcp;
  // Settled when the connection was opened.
  next.mss = live.mss;
  next.ip_header = live.ip_header;
  next.ts_offset = live.ts_offset;
  next.window_shift = live.window_shift;
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

// ---- state
// ------------------------------------------------------------------------------------------

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
  return v;
}

}  // namespace urnic::tcp
