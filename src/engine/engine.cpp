#include "engine/engine.h"

#include <algorithm>
#include <utility>

namespace urnic::engine {
namespace {

// Long to an engine that spins, nothing to one that was woken.
// Longer than a burst takes; TCP has no shorter timers.
constexpr Duration kStall = Duration::ms(1);

// Keys of what is not TCP's (tcp/host_keys.h), from the same seed.
SipKey device_key(std::uint64_t seed, std::uint64_t what) {
  constexpr SipKey kOurs{0x75726e69632d6476, 0x6963652d6b657973};
  return {siphash24(kOurs, {seed, what, 0}), siphash24(kOurs, {seed, what, 1})};
}

// Ethernet header, with a tag when our frames have one.
std::uint32_t link_header(const Options& options) {
  return options.vlan != 0 ? 18 : 14;
}

std::uint32_t usable_mtu(const Options& options, const port::Info& info) {
  const std::uint32_t header = link_header(options);
  const std::uint32_t carried = info.max_frame > header ? info.max_frame - header : 0;
  const std::uint32_t wanted = options.mtu != 0 ? options.mtu : std::min(carried, 9000u);
  return std::min(wanted, carried);
}

net::InterfaceConfig interface_config(const Options& options, const port::Info& info,
                                      std::uint32_t mtu) {
  net::InterfaceConfig c;
  if (info.max_frame == 0) {  // the kernel's TCP: nothing of ours has an address, nor a frame
    c.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
    return c;
  }
  c.mtu = mtu;
  c.vlan = static_cast<std::uint16_t>(options.vlan);
  c.duplicate_detection = options.duplicate_address_detection;
  c.dad = net::DadTiming::quick();
  c.seed = options.seed;
  std::vector<std::string> addresses = options.addresses;
  if (addresses.empty()) {  // the default pair: the listening side of a memif is .1 (E-34)
    const char* last = info.server_side != 0 ? "1" : "2";
    addresses = {std::string("10.77.0.") + last + "/24", std::string("fd77::") + last + "/64"};
  }
  for (const std::string& text : addresses) {
    if (const auto a = IpPrefix::parse(text)) c.addresses.push_back(*a);
  }
  if (const auto mac = MacAddress::parse(options.mac)) {
    c.mac = *mac;
  } else {  // all zero when the port has none: then it derives from the first address
    c.mac = MacAddress::from_bytes(info.mac);
    if (c.mac.is_zero() && options.own_mac) c.mac = *options.own_mac;
  }
  if (const auto gw = IpAddress::parse(options.gateway)) {
    c.routes.push_back({{gw->is_v6() ? IpAddress::any_v6() : IpAddress::any_v4(), 0}, *gw});
  }
  return c;
}

}  // namespace

Engine::Engine(const Options& options, port::Port* port, unsigned queue, Hooks* hooks,
               std::shared_ptr<KernelTcp> kernel)
    : options_(options),
      kernel_(std::move(kernel)),
      port_(port),
      queue_(queue),
      hooks_(hooks),
      keys_(options.seed),
      ports_(keys_.ports, 32768, 60999),
      mtu_(usable_mtu(options, port->info())),
      interface_(interface_config(options, port->info(), mtu_)),
      pool_(options.reassembly_pool),
      memory_(1u << 20, StagForm(device_key(options.seed, 1))),
      tx_(port, queue, mtu_ + link_header(options)),
      connections_(tcp::FlowKeyHash{keys_.flows}, options.max_connections),
      time_wait_(keys_.flows),
      qps_(device_key(options.seed, 2)) {
  settle_by_port_kind(&options_, port->kind());
  options_.context.place_out_of_order = options_.out_of_order == Options::OutOfOrder::Place;
  scratch_.admissions.resize(64);
}

Engine::~Engine() {
  tx_.flush();
}

bool Engine::poll(Instant now) {
  const Turn turn(*this);
  ++counters_.polls;
  tx_.clear_full();
  bool any = kernel_ != nullptr ? poll_sockets(now) : receive_burst(now);
  if ((!any && now >= next_look_) || (counters_.polls & 63) == 0) look_at_link(now);
  if (!loop_.empty()) {
    loop_frames(now);
    any = true;
  }
  if (!draining_.empty()) {
    drain_round(now);
    any = true;
  }
  end_of_burst(now);
  if (cq_overrun_) fail_overrun(now);
  if (link_given_up_at() <= now) give_up_link(now);
  run_timers(now);
  if (interface_.has_events()) {
    interface_.take_events(network_events_);
    for (const net::Event& e : network_events_) on_network_event(e, now);
    any = true;
  }
  if (!sending_.empty() || interface_.output_size() != 0) any |= transmit_round(now);
  tx_.flush();
  last_entry_ = now;
  return any;
}

Instant Engine::next_deadline() const {
  if (!loop_.empty() || !draining_.empty() || interface_.has_events()) return Instant();
  if (kernel_ != nullptr) {
    if (!kernel_->readable.empty() || can_accept()) return Instant();
    return earlier(timers_.earliest(), kernel_->accept_again);
  }
  return earlier(
      earlier(earlier(timers_.earliest(), time_wait_.next_deadline()), interface_.next_deadline()),
      link_given_up_at());
}

// ---- connections
// ------------------------------------------------------------------------------------

Connection* Engine::new_connection(const FlowKey& key) {
  Connection* c = connections_.open(key, &pool_, options_.tcp.receive_buffer);
  if (c != nullptr) ++counters_.connections_opened;
  return c;
}

tcp::Config Engine::tcp_config(const FlowKey& key) const {
  tcp::Config config = tcp::connection_config(options_.tcp, keys_, key, mtu_);
  // A peer that acknowledges once per burst (E-7) shall not slow the start down (RFC 3465, 2.3).
  config.slow_start_segments = 32;
  return config;
}

// ---- time
// -------------------------------------------------------------------------------------------

Instant Engine::tcp_deadline(const Connection& c) const {
  const Instant at = tcp::next_deadline(c.tcb);
  return at.is_never() ? at : std::max(at, c.tcp_not_before);
}

// A burst is stamped with the time at which it began. A caller that lost its processor in the
// middle of it, or behind it, comes back when timers of segments are due that have hardly left: the
// peer cannot have answered.
bool Engine::stalled(const Connection& c, Instant now) const {
  return options_.real_time && c.tcb.timers.last_sent == last_entry_ && now - last_entry_ > kStall;
}

void Engine::arm_timer(Connection& c) {
  if (c.is_over()) return;
  const Instant at = earlier(earlier(tcp_deadline(c), c.stage_deadline), c.first_fpdu_at);
  if (at < c.timer_at) {
    timers_.push(at, c.id);
    c.timer_at = at;
  }
}

void Engine::run_timers(Instant now) {
  interface_.run_timers(now);
  time_wait_.run(now);
  TimerHeap::Entry entry;
  while (timers_.pop_due(now, &entry)) {
    Connection* c = find(entry.id);
    if (c == nullptr || c->timer_at != entry.at) continue;
    c->timer_at = Instant::never();
    on_connection_timer(*c, now);
    arm_timer(*c);
  }
}

void Engine::on_connection_timer(Connection& c, Instant now) {
  if (tcp_deadline(c) <= now && stalled(c, now)) {
    c.tcp_not_before = now + std::max(c.tcb.rtt.srtt * 2, kStall);
  } else if (tcp_deadline(c) <= now) {
    if (c.tcb.timers.retransmit <= now) {
      ++c.counters.rto_expirations;
      interface_.doubt(c.next_hop, now);  // perhaps the neighbour has moved
    }
    tcp::on_deadline(c.tcb, now);
    enqueue_tx(c);
    if (c.tcb.state == tcp::State::Closed) {
      on_closed(c, now);
      return;
    }
  }
  if (c.first_fpdu_at <= now) first_fpdu(c, now);
  if (c.stage_deadline > now) return;
  c.stage_deadline = Instant::never();
  switch (c.stage) {
    case Stage::Opening:
      fail_connection(c, Errc::timed_out, "no answer from the peer: connecting timed out", now);
      return;
    case Stage::Startup:
    case Stage::Full:  // the RTR never came
      fail_connection(c, Errc::timed_out, "the peer did not finish the MPA start-up in time", now);
      return;
    case Stage::Closing:
      fail_connection(c, Errc::timed_out, "the peer did not close its side in time", now);
      return;
    case Stage::Terminated:
      fail_connection(c, Errc::reset, c.failure, now);
      return;
    case Stage::Lingering:
      end_with_reset(c, now);
      return;
  }
}

// ---- news from the network
// -----------------------------------------------------------------------------

// Every connection through `next_hop` (all of them when null) looks for its way again.
void Engine::reroute(const IpAddress* next_hop, bool failed, Instant now) {
  connections_.for_each([&](Connection& c) {
    if (c.loopback) return;
    if (next_hop != nullptr && c.next_hop != *next_hop) return;
    c.routed = false;
    if (failed && c.stage == Stage::Opening && !c.tcb.passive) {
      fail_connection(c, Errc::unreachable,
                      "no answer to address resolution for " + next_hop->to_string(), now);
      return;
    }
    // A SYN whose sender is not there, and a RST that would reach nobody.
    if (failed && (c.half_open || c.stage == Stage::Lingering)) {
      end_with_reset(c, now);
      return;
    }
    enqueue_tx(c);
  });
}

void Engine::on_network_event(const net::Event& e, Instant now) {
  using Kind = net::Event::Kind;
  switch (e.kind) {
    case Kind::NeighbourUsable:
    case Kind::NeighbourForgotten:
      reroute(&e.address, false, now);
      return;
    case Kind::NeighbourFailed:
      reroute(&e.address, true, now);
      return;
    case Kind::Recheck:
      reroute(nullptr, false, now);
      return;
    case Kind::Icmp:
      on_icmp_error(e.icmp, now);
      return;
    case Kind::AddressUsable:
      return;
    case Kind::AddressDuplicate:
    case Kind::AddressConflict:  // defended by the interface (RFC 5227, 2.4)
      hooks_->on_address_conflict(e.address, e.mac);
      return;
  }
}

void Engine::on_icmp_error(const net::IcmpError& e, Instant now) {
  Connection* found = connections_.find({e.local.ip, e.remote.ip, e.local.port, e.remote.port});
  if (found == nullptr) return;
  Connection& c = *found;
  if (!tcp::take_icmp_error(c.tcb, e, now)) return;
  if (c.tcb.state == tcp::State::Closed) {
    on_closed(c, now);
  } else {
    enqueue_tx(c);
  }
}

bool Engine::route_quietly(Connection& c, Instant now) {
  const net::Resolution r = interface_.resolve(c.key.remote, now);
  if (r.kind != net::Resolution::Kind::Mac) return false;
  c.header = make_header(r.mac, c.key.local, c.key.remote);
  c.routed = true;
  return true;
}

// ---- queue pairs and memory
// -------------------------------------------------------------------------------

verbs::QueuePair* Engine::create_qp(ddp::StreamConfig config, verbs::CompletionQueue* send,
                                    verbs::CompletionQueue* receive) {
  config.id = qps_.new_number();
  if (config.id == 0) return nullptr;
  verbs::QueuePair* qp = qps_.add(
      std::make_unique<verbs::QueuePair>(config.id, verbs::kIwarpRules, verbs::Service::Rc, config,
                                         ddp::queue_layout(&streams_), send, receive));
  qp->transport = std::make_unique<ddp::Stream>(config, &streams_, qp);
  qp->state.modify(verbs::QpState::Init);
  return qp;
}

// Its connection, if there is one, goes by RST, and nobody hears of it.
void Engine::forsake(verbs::QueuePair& qp, const char* why, Instant now) {
  Connection* c = find(qp.connection);
  if (c == nullptr) return;
  ended_.keep(qp.number(), connection_stats(*c));
  stream_ended(ddp::stream_of(qp));
  c->qp = nullptr;
  qp.connection = 0;
  fail_connection(*c, Errc::closed, why, now);
  transmit_round(now);
}

void Engine::destroy_qp(verbs::QueuePair* qp, Instant now) {
  const Turn turn(*this);
  forsake(*qp, "the queue pair was destroyed", now);
  ended_.forget(qp->number());
  qps_.destroy(qp);
}

verbs::QpVerdict Engine::modify_qp(verbs::QueuePair& qp, verbs::QpState to, std::uint32_t mask,
                                   Instant now) {
  using verbs::QpEffect;
  using verbs::QpState;
  const verbs::QpMove move = qp.state.judge(to, mask);
  if (!move.ok()) return move.verdict;
  const Turn turn(*this);
  if (to == QpState::Sqd) {  // the orderly end, which moves it
    disconnect(qp, now);
    return move.verdict;
  }
  // The end of the connection moves it to Error, flushes and tells who wants to hear of it.
  if (to == QpState::Error) abort(qp, now);
  qp.state.modify(to, mask);
  if (move.effect == QpEffect::FlushAll) flush_qp(qp, verbs::Status::Flushed);
  if (move.effect == QpEffect::Discard) {
    forsake(qp, "the queue pair was reset", now);
    for (verbs::CompletionQueue* cq : {qp.send_cq, qp.receive_cq}) cq->forget(qp.number());
    ddp::stream_of(qp).reset();
    qp.starved = false;
    qp.last_receive_told = false;
  }
  return move.verdict;
}

bool Engine::deregister(std::uint32_t stag) {
  if (memory_.find(stag) == nullptr && memory_.at_index(stag) == nullptr) return false;
  // E-25: no stream reads or writes its memory afterwards.
  qps_.for_each([&](verbs::QueuePair& qp) { ddp::stream_of(qp).sender.detach_region(stag); });
  return memory_.deregister(stag);
}

void Engine::work_posted(verbs::QueuePair& qp, Instant now) {
  const Turn turn(*this);
  flush_posted(qp);
  receive_posted(qp, now);
  doorbell(qp, now);
  if (cq_overrun_) fail_overrun(now);
  last_entry_ = now;
}

void Engine::receive_posted(verbs::QueuePair& qp, Instant now) {
  const Turn turn(*this);
  if (!qp.starved.exchange(false) || !options_.rq_nudge) return;
  Connection* c = find(qp.connection);
  if (c == nullptr) return;
  // E-17: three duplicate ACKs make a sender without SACK retransmit now instead of after its RTO.
  for (int i = 0; i < 3; ++i) emit_ack(*c, now);
  tx_.flush();
}

verbs::SharedReceiveQueue* Engine::create_shared_rq(verbs::PdId pd, std::uint32_t max_wr,
                                                    std::uint32_t max_sge) {
  return qps_.create_shared(pd, max_wr, max_sge);
}

bool Engine::destroy_shared_rq(verbs::SharedReceiveQueue* queue) {
  return qps_.destroy_shared(queue);
}

void Engine::shared_posted(verbs::SharedReceiveQueue& queue, Instant now) {
  const Turn turn(*this);
  if (!queue.wanted.exchange(false)) return;
  const std::vector<ConnectionId> waiting = std::exchange(queue.starved, {});
  for (const ConnectionId id : waiting) {
    Connection* c = find(id);
    if (c != nullptr && c->qp != nullptr) receive_posted(*c->qp, now);
  }
}

void Engine::set_shared_limit(verbs::SharedReceiveQueue& queue, std::uint32_t limit) {
  queue.set_limit(limit);
  look_at_shared_limits();
}

void Engine::look_at_shared_limits() {
  qps_.take_limit_events([this](verbs::SharedReceiveQueue* q) { hooks_->on_shared_limit(q); });
}

ConnectParams Engine::default_params() const {
  ConnectParams p;
  p.context = options_.context;
  p.mpa = options_.mpa;
  p.timeout = options_.startup_timeout;
  return p;
}

}  // namespace urnic::engine
