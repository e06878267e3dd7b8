#include "tcp/stack.h"

#include <algorithm>

namespace urnic::tcp {
Stack::Stack(StackConfig config) : StackCore(std::move(config)) {}

Stack::~Stack() = default;

void Stack::add_address(const IpAddress& address) {
  config_.addresses.push_back(address);
}

void Stack::set_sink(Sink sink, void* context) {
  out_.set_sink(sink, context);
  deliver();
}

void Stack::set_on_change(OnChange on_change, void* context) {
  on_change_ = on_change;
  change_context_ = context;
}

Endpoint Stack::open() {
  return SocketTable::handle(sockets_.add(&pool_, config_.options));
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
  if (sockets_.in_use(s->local)) return Status::AddressInUse;
  s->kind = Socket::Kind::Listener;
  s->backlog.most_waiting = backlog;
  sockets_.listen(*s);
  return Status::Ok;
}

Endpoint Stack::accept(Endpoint e, SocketAddress* peer, Instant now) {
  const Entry entry(*this, now);
  Socket* s = find(e);
  if (s == nullptr || s->kind != Socket::Kind::Listener || s->ready.empty()) return Endpoint::None;
  Socket& child = *sockets_.at(s->ready.front());
  s->ready.pop_front();
  --s->backlog.waiting;
  child.pending = false;
  child.has_handle = true;
  if (peer != nullptr) *peer = child.remote;
  return SocketTable::handle(child);
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
  if (local.port == 0 || time_wait_.contains(key) || !flows_.insert(key, s->slot).inserted) {
    return Status::AddressInUse;
  }
  s->kind = Socket::Kind::Stream;
  s->local = local;
  s->remote = remote;
  s->round_begin = now;
  grants_.open(*s);
  open_active(s->tcb, config_for(*s, key), choose_isn(local, remote, now), now);
  ++counters_.opened_active;
  pump(*s, now);
  end_or_arm(*s, now);
  return Status::InProgress;
}

}  // namespace urnic::tcp
