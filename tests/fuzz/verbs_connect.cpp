// Queue pairs of an end, and their connections.
#include "tests/fuzz/verbs_end.h"

namespace urnic::fuzz {
namespace {

constexpr std::uint32_t kPsn = 0xfffff0;
constexpr std::uint32_t kQkey = 0x11111111;

// A port that either transport may use, one for RoCE only, and one without a listener.
std::uint16_t port_of(Transport t, unsigned which) {
  return static_cast<std::uint16_t>((t == Transport::roce ? 7100 : 7200) + which);
}

QpAttributes init_attributes(Service service) {
  QpAttributes a;
  if (service == Service::ud) {
    a.qkey = kQkey;
  } else {
    a.access = access_remote_write;
    if (service == Service::rc) {
      *a.access |= access_remote_read | access_remote_atomic;
    }
  }
  return a;
}

QpAttributes rtr_attributes(Service service, const std::string& peer, std::uint32_t number) {
  QpAttributes a;
  if (service == Service::ud) return a;
  a.dest_qp = number;
  a.path.emplace();
  a.path->remote = peer;
  a.path_mtu = 1024;
  a.rq_psn = kPsn;
  if (service == Service::uc) return a;
  a.responder_depth = 4;
  a.min_rnr_timer = 1;
  return a;
}

QpAttributes rts_attributes(Service service) {
  QpAttributes a;
  a.sq_psn = kPsn;
  if (service != Service::rc) return a;
  a.ack_timeout = 10;
  a.retry_count = 3;
  a.rnr_retry = 2;
  a.initiator_depth = 4;
  return a;
}

QpAttributes attributes(Service service, QpState to, const std::string& peer,
                        std::uint32_t number) {
  switch (to) {
    case QpState::init:
      return init_attributes(service);
    case QpState::rtr:
      return rtr_attributes(service, peer, number);
    case QpState::rts:
      return rts_attributes(service);
    default:
      return {};
  }
}

// Makes an attribute missing, superfluous or invalid.
void spoil(QpAttributes* a, Input& in) {
  switch (in.below(6)) {
    case 0:
      a->dest_qp = in.u32();
      return;
    case 1:
      a->path_mtu = in.u16();
      return;
    case 2:
      a->path.reset();
      return;
    case 3:
      a->responder_depth = in.u8();
      return;
    case 4:
      a->sq_psn.reset();
      return;
    default:
      a->access = in.u8();
      return;
  }
}

}  // namespace

void End::add_pair(const ProtectionDomain& pd, const QpOptions& options, const Queue& send,
                   const Queue& receive) {
  QpOptions o = options;
  Pair p;
  p.name = new_name();
  o.send_cq = send.cq;
  o.receive_cq = receive.cq;
  o.context = context(p.name);
  auto made = call([&] { return device.create_qp(pd, o); });
  if (!made) return;
  p.qp = std::move(*made);
  p.sends = new_name();
  p.receives = new_name();
  p.send_cq = send.name;
  p.receive_cq = receive.name;
  p.transport = o.transport.value_or(Transport::iwarp);
  p.service = o.service;
  p.signal_all = o.signal_all;
  require(p.qp.number() != 0 && p.qp.number() < 1u << 24, "a number that is none");
  for (const Pair& other : pairs_) {
    require(other.qp.number() != p.qp.number(), "two queue pairs have one number");
  }
  alive_.insert(p.name);
  pairs_.push_back(std::move(p));
}

void End::make_pair(Input& in) {
  const ProtectionDomain* pd = any(domains_, in);
  if (pd == nullptr || pairs_.size() >= kMost) return;
  const Queue *send = any(queues_, in), *receive = in.often(64) ? any(queues_, in) : send;
  QpOptions o;
  if (send == nullptr) return;
  o.transport = in.often(128) ? Transport::roce : Transport::iwarp;
  if (in.often(64)) o.service = static_cast<Service>(in.below(3));
  o.max_send = in.often(32) ? in.below(3) : 1 + in.below(64);
  o.max_receive = in.often(32) ? in.below(3) : 1 + in.below(64);
  o.max_send_sge = in.often(32) ? in.below(40) : 4;
  o.max_inline = in.often(32) ? in.u16() : 64;
  o.signal_all = in.often(64);
  o.asynchronous_events = in.often(128);
  const Named<EventQueue>* q = any(events_, in);
  o.events = q->object;
  Shared* shared = in.often(80) ? any(shared_, in) : nullptr;
  if (shared != nullptr) o.srq = shared->queue;
  if (in.often(64)) {
    o.iwarp.completion_method = 1 + in.below(2);
    o.iwarp.receive_wait_ms = in.u8();
  }
  if (in.often(16)) o.number = in.below(8);
  const std::size_t before = pairs_.size();
  add_pair(*pd, o, *send, *receive);
  if (pairs_.size() == before) return;
  pairs_.back().events = q->name;
  if (shared == nullptr) return;
  pairs_.back().srq = shared->name;
  pairs_.back().receives = shared->name;
}

void End::destroy_pair(std::size_t at, bool discard) {
  Pair& p = pairs_[at];
  alive_.erase(p.name);
  if (Shared* s = find(shared_, p.srq); s != nullptr) s->is_certain = false;
  if (discard) {
    p.qp.discard();
    require(!p.qp, "a queue pair that was discarded is still there");
    ledger_.forget(p.sends);
    if (p.srq == 0) ledger_.forget(p.receives);
  } else {
    p.qp = QueuePair();
    ledger_.lose(p.sends);
    if (p.srq == 0) ledger_.lose(p.receives);
  }
  std::swap(p, pairs_.back());
  pairs_.pop_back();
}

void End::connect(End& peer, Input& in) {
  Pair* p = any(pairs_, in);
  if (p == nullptr) return;
  std::vector<std::uint8_t> said = in.bytes(in.often(128) ? in.u8() % 64 : 0);
  ConnectionOptions o;
  o.private_data = said;
  o.timeout_ms = in.often(64) ? in.u8() : 10000;
  if (in.often(32)) o.ird = in.u16();
  if (in.often(32)) o.ord = in.u16();
  if (in.often(32)) o.refusal_retry_ms = in.below(120);
  if (in.often(16)) o.iwarp.type = ConnectionType::slow;
  if (in.often(16)) o.iwarp.crc = false;
  Binding* source = in.often(32) ? any(bindings_, in) : nullptr;
  o.source = source;
  const std::uint16_t port = port_of(p->transport, in.often(240) ? in.below(2) : 2);
  const std::string at = in.often(8) ? "10.77.0.1:x" : peer.address() + ":" + std::to_string(port);
  const bool was_pending = p->pending;
  const auto begun = call([&] { return p->qp.connect_start(at, o); });
  if (!begun) return;
  require(!was_pending, "a queue pair connects twice at a time");
  p->pending = p->may_be_told = true;
}

void End::answer(Input& in) {
  if (requests_.empty()) return;
  const std::size_t at = in.below(static_cast<std::uint32_t>(requests_.size()));
  ConnectRequest& r = requests_[at];
  require(r.private_data().size() <= 512, "private data beyond what can be");
  if (in.often(200)) {
    Pair* p = any(pairs_, in);
    if (p == nullptr) return;
    ConnectionOptions o;
    const std::vector<std::uint8_t> said = in.bytes(in.often(64) ? in.u8() % 160 : 0);
    o.private_data = said;
    if (in.often(32)) o.timeout_ms = in.u8();
    const bool datagrams = r.service() == Service::ud, was_pending = p->pending;
    const auto accepted = call([&] { return r.accept(p->qp, o); });
    if (!accepted) return;
    if (!datagrams) {
      require(!was_pending, "a queue pair is accepted that connects");
      p->pending = p->may_be_told = true;
    }
  } else if (in.often(128)) {
    const std::vector<std::uint8_t> said = in.bytes(in.u8());
    call([&] { return r.reject(said), 0; });
  }
  if (in.often(224)) {
    std::swap(requests_[at], requests_.back());
    requests_.pop_back();
  }
}

void End::modify(End& peer, Input& in) {
  Pair* p = any(pairs_, in);
  if (p == nullptr) return;
  const QpState from = p->qp.state();
  auto to = static_cast<QpState>(in.below(7));
  if (in.often(96) && from < QpState::rts) {
    to = static_cast<QpState>(static_cast<int>(from) + 1);
  }
  const Pair* other = any(peer.pairs_, in);
  QpAttributes a =
      attributes(p->service, to, peer.address(), other == nullptr ? in.u16() : other->qp.number());
  if (in.often(32)) spoil(&a, in);
  if (to == QpState::sqd && in.often(128)) a.tell_drained = true;
  const auto moved = call([&] { return p->qp.modify(to, a); });
  if (!moved) {
    require(moved.error().code == Errc::no_memory || p->qp.state() == from,
            "a move that was refused has changed the state");
    return;
  }
  p->pending = false;
  if (to != QpState::reset) return;
  ledger_.forget(p->sends);
  if (p->srq == 0) {
    ledger_.forget(p->receives);
  } else if (Shared* s = find(shared_, p->srq); s != nullptr) {
    s->is_certain = false;
  }
}

bool End::lead(Pair& p, QpState to, const std::string& peer, std::uint32_t number) {
  if (static_cast<int>(p.qp.state()) != static_cast<int>(to) - 1) return p.qp.state() == to;
  const QpAttributes a = attributes(p.service, to, peer, number);
  return call([&] { return p.qp.modify(to, a); }).ok();
}

// Connects a pair here with one of the peer, by agreement of their programs.
void End::pair_up(End& peer, Input& in) {
  Pair* p = any(pairs_, in);
  if (p == nullptr || p->transport != Transport::roce) return;
  for (Pair& q : peer.pairs_) {
    if (q.transport != Transport::roce || q.service != p->service) continue;
    for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
      if (!lead(*p, to, peer.address(), q.qp.number())) return;
      if (!peer.lead(q, to, address(), p->qp.number())) return;
    }
    return;
  }
}

void End::end_connection(Input& in) {
  Pair* p = any(pairs_, in);
  if (p == nullptr) return;
  const bool orderly = in.often(128);
  call([&] {
    if (orderly) {
      p->qp.disconnect();
    } else {
      p->qp.abort();
    }
    return 0;
  });
}

void End::listen(Input& in) {
  switch (in.below(5)) {
    case 0:
    case 1: {
      if (listeners_.size() + bindings_.size() >= kMost) return;
      BindOptions o;
      o.transport = in.often(128) ? Transport::roce : Transport::iwarp;
      if (*o.transport == Transport::roce && in.often(80)) o.service = Service::ud;
      o.shared = in.often(32);
      const std::uint16_t port = in.often(32) ? 0 : port_of(*o.transport, in.below(3));
      const std::string at = (in.often(128) ? address() : "0.0.0.0") + ":" + std::to_string(port);
      auto bound = call([&] { return device.bind(at, o); });
      if (bound) bindings_.push_back(std::move(*bound));
      return;
    }
    case 2: {
      Binding* b = any(bindings_, in);
      if (b == nullptr) return;
      const Name name = new_name();
      Named<EventQueue>* q = any(events_, in);
      const bool own = in.often(32);
      auto made = call([&] {
        return device.listen(*b, static_cast<int>(1 + in.below(4)), own ? EventQueue() : q->object,
                             context(name));
      });
      if (made) {
        alive_.insert(name);
        listeners_.push_back({name, std::move(*made)});
        require(!*b, "a binding is still there behind its listener");
      }
      if (!*b) {
        std::swap(*b, bindings_.back());
        bindings_.pop_back();
      }
      return;
    }
    case 3: {
      Named<Listener>* l = any(listeners_, in);
      if (l == nullptr || in.often(192)) return;
      alive_.erase(l->name);
      std::swap(*l, listeners_.back());
      listeners_.pop_back();
      return;
    }
    default:
      if (!bindings_.empty() && in.often(32)) bindings_.pop_back();
      return;
  }
}

void End::take_event(Event& e) {
  const Name name = reinterpret_cast<Name>(e.context);
  require(name == 0 || alive_.contains(name), "an event of what is no longer there");
  Pair* p = find(pairs_, name);
  switch (e.kind) {
    case EventKind::connect_request:
      require(static_cast<bool>(e.request), "a request that is none");
      if (requests_.size() < kMost) requests_.push_back(std::move(e.request));
      return;
    case EventKind::established:
      ++established_;
      [[fallthrough]];
    case EventKind::connect_failed:
      require(p != nullptr && p->may_be_told, "the outcome of what was never begun");
      p->pending = false;
      return;
    case EventKind::failed:
    case EventKind::disconnected:
      if (p != nullptr) p->pending = false;
      return;
    case EventKind::resolved:
      if (services_.size() < kMost) services_.push_back(std::move(e.peer));
      return;
    default:
      return;
  }
}

// Establishes one connection of each transport at the beginning: listen, connect, accept.
void End::begin(End& peer) {
  for (const Transport t : {Transport::iwarp, Transport::roce}) {
    QpOptions o;
    o.transport = t;
    o.max_send = o.max_receive = 64;
    for (End* e : {this, &peer}) {
      o.events = e->events_.front().object;
      e->add_pair(e->domains_.front(), o, e->queues_.front(), e->queues_.front());
      e->pairs_.back().events = e->events_.front().name;
    }
    BindOptions bind;
    bind.transport = t;
    const std::string at = peer.address() + ":" + std::to_string(port_of(t, 0));
    auto bound = peer.device.bind(at, bind);
    require(bound.ok(), "an address is not free at the beginning");
    const Name name = peer.new_name();
    auto made = peer.device.listen(*bound, 4, peer.events_.front().object, context(name));
    require(made.ok(), "nobody can listen at the beginning");
    peer.alive_.insert(name);
    peer.listeners_.push_back({name, std::move(*made)});
    Pair& p = pairs_.back();
    require(p.qp.connect_start(at).ok(), "nobody can connect at the beginning");
    p.pending = p.may_be_told = true;
    for (int i = 0; i < 2000 && (p.pending || peer.pairs_.back().pending); ++i) {
      device.progress();
      peer.device.progress();
      poll_all();
      peer.poll_all();
      if (peer.requests_.empty()) continue;
      Pair& q = peer.pairs_.back();
      require(peer.requests_.back().accept(q.qp).ok(), "nobody can accept at the beginning");
      q.pending = q.may_be_told = true;
      peer.requests_.clear();
    }
    require(!p.pending, "no connection at the beginning");
  }
}

void End::check_outcomes() {
  for (const Pair& p : pairs_) {
    if (!p.pending || find(events_, p.events) == nullptr) continue;
    fail("an attempt to connect has no outcome");
  }
}

void End::end_all_work() {
  for (Pair& p : pairs_) {
    if (p.qp.state() == QpState::reset) continue;  // it has no work
    const auto moved = p.qp.modify(QpState::error);
    if (!moved) fail("a queue pair cannot be moved to error: " + moved.error().message);
  }
}

}  // namespace urnic::fuzz
