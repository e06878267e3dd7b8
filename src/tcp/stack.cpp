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
      keys_(config_.seed),
      ports_(keys_.ports, config_.port_first, config_.port_last),
      pool_(kChunk, std::numeric_limits<std::size_t>::max(), kKeptChunks),
      flows_(FlowHash{keys_.flows}) {}

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
  take_back(s);
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
  return ports_.choose(local, remote, taken);
}

Config Stack::connection_config(const Socket& s, const SocketAddress& local,
                                const SocketAddress& remote) const {
  Config c = s.options.tcp;
  c.ip_header = static_cast<std::uint8_t>(net::ip_header_size(remote.ip));
  c.mss = static_cast<std::uint16_t>(s.options.mtu - c.ip_header - kHeaderMin);
  // A listener has none; what it tells of a cookie's window is the least.
  if (s.receive_granted != 0) c.receive_buffer = s.receive_granted;
  c.ts_offset = config_.ts_offset ? config_.ts_offset(local, remote)
                                  : timestamp_offset(keys_.timestamps, local, remote);
  c.challenge_acks = config_.challenge_acks;
  c.challenge_key = challenge_key(keys_.challenges, local, remote);
  return c;
}

Seq Stack::choose_isn(const SocketAddress& local, const SocketAddress& remote, Instant now) {
  return config_.isn ? config_.isn(local, remote, now)
                     : initial_sequence(keys_.isn, local, remote, now);
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
  s->round_begin = now;
  grant_first(*s);
  open_active(s->tcb, connection_config(*s, local, remote), choose_isn(local, remote, now), now);
  ++counters_.opened_active;
  pump(*s, now);
  settle(*s, now);
  return Status::InProgress;
}

}  // namespace urnic::tcp
