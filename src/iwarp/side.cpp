#include "iwarp/side.h"

#include <utility>

#include "iwarp/connection_stats.h"
#include "iwarp/guard_allocation.h"

namespace urnic::iwarp {
namespace {

// Segments one connection may send before the next one gets its turn.
constexpr unsigned kTurn = 64;
// How long an ACK waits for data that is sent soon (E-7).
constexpr Duration kAckWaits = Duration::us(50);

// A receive was posted for the Send that waits on `c`, the connection of `qp`, if it has one.
void resume(RxCommit& delivery, Ending& ending, Connection* c, verbs::QueuePair& qp, Instant now) {
  if (c == nullptr) {
    qp.starved = false;
  } else {
    guard_allocation(ending, *c, now, [&] { delivery.receive_posted(qp, now); });
  }
}

// Sends the ACKs that have waited. Data sent in the meantime has carried some of them.
void acknowledge_owing(SideState& state) {
  while (!state.owing.empty()) {
    Connection* c = state.owing.pop(state.connections);
    if (c == nullptr || !tcp::ack_pending(c->tcb)) continue;
    tcp::acknowledge(c->tcb);
    state.sending.push(*c);
  }
}

// A receive was posted: the waiting Send continues at once, without a poll.
void take_waiting(Side& side, Instant now) {
  const Side::Scope scope(side);
  if (!side.drain_round(now)) return;
  side.end_of_burst(false, false, now);
  side.transmit_round(now);
}

// Gives one connection its turn at sending. Returns true if there is more to send.
bool send_turn(Transport& transport, ConnectionEvents& events, Connection& c, Instant now) {
  if (c.awaits_listener()) return false;
  Sent sent = transport.transmit(c, kTurn, now);
  if (sent.found.ends_stream() && c.stage != Stage::Terminated) {
    events.settle(c, sent.found, now);
    if (c.is_over()) return false;
    sent = transport.transmit(c, kTurn, now);  // the Terminate goes at once
  }
  events.settle_turn(c, sent, now);
  return sent.more && !c.is_over();
}

}  // namespace

Side::Side(const Options& options, Hooks* hooks, Completions* completions, net::Wire* wire,
           verbs::MemoryTable* memory, std::shared_ptr<KernelTcp> kernel, unsigned queue,
           std::uint32_t queues)
    : state_(options, hooks, wire, memory, std::move(kernel)),
      completions_(*completions),
      transmitter_(&state_, &completions_),
      kernel_sender_(&state_, &completions_),
      rx_commit_(&state_, &completions_, &transmitter_),
      slow_(&state_, &rx_commit_),
      receiver_(&state_, &rx_commit_, &slow_, &transmitter_),
      transport_(&state_, &transmitter_, &kernel_sender_, &slow_, &rx_commit_),
      ending_(&state_, &transport_, &completions_),
      opening_(&state_, &transmitter_, &transport_, &completions_, &ending_, queue, queues),
      events_(&state_, &transport_, &opening_, &ending_),
      rounds_(&state_, &transport_, &kernel_sender_, &opening_, &ending_, &events_) {}

Side::~Side() = default;

// ---- driving

bool Side::drain_round(Instant now) {
  if (state_.draining.empty()) return false;
  std::uint64_t left = kDrainRound;
  while (left != 0 && !state_.draining.empty()) {
    Connection* c = state_.draining.pop(state_.connections);
    if (c == nullptr) continue;
    if (c->stream == nullptr || c->stage < Stage::Full) continue;
    guard_allocation(ending_, *c, now, [&] {
      // A connection that accepts no data any more may have an end that waited for this turn.
      const bool takes = c->stage <= Stage::Closing;
      // A receive was posted; the kernel's bytes have their own budget.
      if (c->link != nullptr) {
        if (takes) events_.drain(*c, now);
        return;
      }
      Found found;
      if (takes) left -= std::min(left, slow_.drain(*c, std::min(left, kDrainTurn), now, &found));
      found.closed = c->tcb.state == tcp::State::Closed || c->tcb.state == tcp::State::TimeWait;
      if (takes) state_.touched.push(*c);
      events_.settle(*c, found, now);
    });
  }
  return true;
}

bool Side::end_of_burst(bool idle, bool acks_wait, Instant now) {
  if (!state_.owing.empty()) {
    if (idle || !acks_wait || state_.owing_since + kAckWaits <= now) acknowledge_owing(state_);
  }
  // Not twice in a row: a connection that has waited once is in `sending`.
  bool waits = !state_.touched.empty() && state_.sending.empty();
  while (!state_.touched.empty()) {
    Connection* c = state_.touched.pop(state_.connections);
    if (c == nullptr) continue;
    guard_allocation(ending_, *c, now, [&] {
      // If this makes an ACK due, it leaves with the data sent now.
      if (c->stage != Stage::Startup) {
        tcp::set_receive_room(c->tcb, rx_commit_.receive_room(*c), now);
      }
      if (tcp::end_of_burst(c->tcb, acks_wait)) {
        if (state_.owing.empty()) state_.owing_since = now;
        state_.owing.push(*c);
      } else {
        waits = false;
      }
      state_.sending.push(*c);
      state_.timers.arm(*c);
    });
  }
  return waits;
}

void Side::run_timers(Instant now) {
  state_.time_wait.run(now);
  if (state_.end_again <= now) [[unlikely]]
    ending_.finish_ends(now);
  if (state_.kernel != nullptr && state_.kernel->departing.next() <= now) [[unlikely]]
    state_.kernel->departing.run(now);
  while (Connection* c = state_.timers.pop_due(state_.connections, now)) {
    guard_allocation(ending_, *c, now, [&] {
      events_.on_timer(*c, now);
      state_.timers.arm(*c);
    });
  }
}

Instant Side::next_deadline() const {
  if (!state_.draining.empty()) return Instant();
  const Instant end = earlier(state_.time_wait.next_deadline(), state_.end_again);
  const Instant ack = state_.owing.empty() ? Instant::never() : state_.owing_since + kAckWaits;
  const Instant timer = earlier(earlier(state_.timers.earliest(), end), ack);
  if (state_.kernel == nullptr) return timer;
  const Instant kernel = earlier(state_.kernel->accept_again, state_.kernel->departing.next());
  return rounds_.has_work() ? Instant() : earlier(timer, kernel);
}

bool Side::transmit_round(Instant now) {
  state_.wire.begin_sending();
  const std::uint64_t sent = state_.wire.tx().frames_sent();
  const std::size_t looped = state_.wire.looped();
  state_.wire.send_control_frames();
  const std::size_t n = state_.sending.size();
  bool any = false;
  for (std::size_t i = 0; i < n && !state_.wire.tx().full(); ++i) {
    Connection* c = state_.sending.pop(state_.connections);
    if (c == nullptr) {
      any = true;
      continue;
    }
    bool more = false;
    guard_allocation(ending_, *c, now, [&] {
      more = send_turn(transport_, events_, *c, now);
      if (more) state_.sending.push(*c);
      state_.timers.arm(*c);
    });
    any |= !more;
  }
  state_.wire.finish_sending();
  return any || state_.wire.tx().frames_sent() != sent || state_.wire.looped() != looped;
}

// ---- queue pairs

void Side::attach(verbs::QueuePair& qp, const ddp::StreamConfig& config) {
  qp.transport = std::make_unique<ddp::Stream>(config, &state_.streams, &qp);
}

void Side::abort_silently(verbs::QueuePair& qp, Instant now) {
  Connection* c = find(qp.connection);
  if (c == nullptr) return;
  const Scope scope(*this);
  ending_.abort_silently(*c, now);
  transmit_round(now);
}

void Side::destroy(std::unique_ptr<verbs::QueuePair> qp, Instant now) {
  const Scope scope(*this);
  const std::uint32_t number = qp->number();
  Connection* c = find(qp->connection);
  if (c != nullptr && ending_.leave(*c, qp, now)) {
    transmit_round(now);
  } else {
    abort_silently(*qp, now);
  }
  state_.ended.forget(number);
}

void Side::fail(verbs::QueuePair& qp, Errc code, const char* why, Instant now) {
  const Scope scope(*this);
  if (Connection* c = find(qp.connection)) {
    guard_allocation(ending_, *c, now, [&] { ending_.fail_connection(*c, code, why, now); });
    return;
  }
  if (qp.state == verbs::QpState::Error) return;
  if (qp.state == verbs::QpState::Reset) return;  // no work can be lost
  qp.state.modify(verbs::QpState::Error);
  flush(completions_, qp, verbs::Status::Flushed);
  state_.hooks->on_cm_event(
      {.kind = CmEvent::Kind::Failed, .qp = &qp, .code = code, .message = why});
}

void Side::sends_posted(verbs::QueuePair& qp, Instant now) {
  const Scope scope(*this);
  Connection* c = find(qp.connection);
  if (c == nullptr) return;
  if (!state_.kernel) prefetch(*c);
  const std::size_t itself = c->in_tx_queue ? 1 : 0;
  if (state_.sending.size() > itself) {  // others wait for the port, so this one waits for its turn
                                         //
    guard_allocation(ending_, *c, now, [&] { state_.sending.push(*c); });
    transmit_round(now);
    return;
  }
  state_.wire.begin_sending();
  guard_allocation(ending_, *c, now, [&] {
    if (send_turn(transport_, events_, *c, now)) state_.sending.push(*c);
    state_.timers.arm(*c);
  });
  state_.wire.finish_sending();
}

void Side::receives_posted(verbs::QueuePair& qp, Instant now) {
  if (!qp.starved.load()) return;  // no Send waits for one
  resume(rx_commit_, ending_, find(qp.connection), qp, now);
  take_waiting(*this, now);
}

void Side::shared_posted(verbs::SharedReceiveQueue& queue, Instant now) {
  if (!queue.wanted.exchange(false)) return;
  const std::vector<ConnectionId> waiting = std::exchange(queue.starved, {});
  for (const ConnectionId id : waiting) {
    Connection* c = find(id);
    if (c != nullptr && c->qp != nullptr) resume(rx_commit_, ending_, c, *c->qp, now);
  }
  take_waiting(*this, now);
}

// ---- connections

Result<Listener*> Side::listen(std::uint16_t port, int backlog) {
  const auto bound = bind({.at = {IpAddress::any_v6(), port}});
  if (!bound) return bound;
  const auto listening = listen(bound.value(), backlog);
  if (listening) return bound;
  state_.listeners.remove(bound.value());
  return listening.error();
}

void Side::close_listener(Listener* listener, Instant now) {
  const Scope scope(*this);
  state_.connections.for_each([&](Connection& c) {
    if (c.backlog.listener() != listener) return;
    if (Opening::is_request(&c)) {
      c.backlog.leave(c.key.remote);
    } else {
      guard_allocation(ending_, c, now, [&] {
        ending_.fail_connection(c, Errc::closed, "the listener was closed", now);
      });
    }
  });
  if (state_.kernel != nullptr) rounds_.close_listening(*listener);
  state_.listeners.remove(listener);
  transmit_round(now);
}

namespace {

// The connection has begun, so the call succeeds. Data that cannot be sent now waits for memory.
void transmit_begun(Side& side, Instant now) {
  try {
    side.transmit_round(now);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

Result<void> Side::connect(verbs::QueuePair& qp, const SocketAddress& to,
                           const ConnectParams& params, Instant now) {
  const Scope scope(*this);
  auto begun = opening_.connect(qp, to, params, now);
  if (begun) transmit_begun(*this, now);
  return begun;
}

Result<void> Side::accept(ConnectionId connection, verbs::QueuePair& qp,
                          const ConnectParams& params, Instant now) {
  const Scope scope(*this);
  Connection* c = find(connection);
  if (!Opening::is_request(c)) {
    return Error{Errc::closed,
                 "the connection request is no longer pending: the peer gave up or was reset"};
  }
  const verbs::QpState before = qp.state;
  Result<void> accepted;
  try {
    accepted = opening_.accept(*c, qp, params, now);
  } catch (const std::bad_alloc&) {
    if (c->qp == nullptr) {
      ending_.out_of_memory(*c, now);
    } else {
      ending_.abort_silently(*c, now);
      undo_connecting(qp, before);
    }
    accepted = Error{Errc::no_memory, "out of memory"};
  }
  if (accepted) guard_allocation(ending_, *c, now, [&] { events_.drain(*c, now); });
  transmit_begun(*this, now);
  return accepted;
}

void Side::reject(ConnectionId connection, ByteView private_data, Instant now) {
  const Scope scope(*this);
  Connection* c = find(connection);
  if (!Opening::is_request(c)) return;
  guard_allocation(ending_, *c, now, [&] { opening_.reject(*c, private_data, now); });
  transmit_round(now);
}

void Side::disconnect(verbs::QueuePair& qp, Instant now) {
  const Scope scope(*this);
  Connection* c = find(qp.connection);
  if (c == nullptr) return;
  if (c->stage == Stage::Opening || c->stage == Stage::Startup) {
    ending_.fail_connection(*c, Errc::closed, "the connection was closed before it was established",
                            now);
    transmit_round(now);
    return;
  }
  if (c->stage != Stage::Full) return;
  guard_allocation(ending_, *c, now, [&] {
    ending_.begin_closing(*c, now);
    if (c->awaits_receive()) {  // the waiting data will not be received any more
      c->receive_wait = ReceiveWait::None;
      state_.draining.push(*c);
    }
    state_.sending.push(*c);
    state_.timers.arm(*c);
  });
  transmit_round(now);
}

void Side::abort(verbs::QueuePair& qp, Instant now) {
  const Scope scope(*this);
  if (Connection* c = find(qp.connection)) {
    ending_.fail_connection(*c, Errc::closed, "aborted by the local program", now);
    transmit_round(now);
  }
}

ConnectionStats Side::qp_stats(const verbs::QueuePair& qp) const {
  if (const Connection* c = find(qp.connection)) return stats_of(*c);
  if (const ConnectionStats* last = state_.ended.last_of(qp.number())) return *last;
  ConnectionStats s;
  s.qp_number = qp.number();
  s.state = verbs::name(qp.state);
  return s;
}

}  // namespace urnic::iwarp
