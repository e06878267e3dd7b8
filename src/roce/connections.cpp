// The consumer's calls for connections.
#include "roce/connections.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "roce/connection_moves.h"

namespace urnic::roce {
namespace {

using verbs::QpState;

std::uint8_t depth_of(std::uint32_t wanted, std::uint32_t most) {
  return static_cast<std::uint8_t>(std::min({wanted, most, 255u}));
}

std::optional<Error> wrong_with(const CmBindings& bindings, const verbs::QueuePair& qp,
                                const ConnectParams& p, std::size_t room) {
  if (qp.state > QpState::Init) {
    return Error{Errc::wrong_state, "the queue pair is or was already connected: use a new one"};
  }
  if (bindings.of(qp) != nullptr) {
    return Error{Errc::wrong_state, "the queue pair is connected or in time-wait"};
  }
  if (p.private_data.size() > room) {
    return Error{Errc::invalid_argument,
                 "private_data: must be at most " + std::to_string(room) + " bytes"};
  }
  return std::nullopt;
}

}  // namespace

Connections::Connections(const ib_cm::Options& cm, const Options& roce, const GateRules* gate,
                         verbs::Hooks* hooks, net::Wire* wire, Side* side, verbs::QueuePairs* qps,
                         verbs::ControlPath* control)
    : cm_options_(cm),
      most_depth_(roce.most_depth),
      tells_credits_(roce.tell_credits),
      hooks_(hooks),
      wire_(*wire),
      side_(*side),
      qps_(*qps),
      control_(control),
      listeners_(cm.key, gate, &wire->interface()),
      resolver_(hooks, &wire->interface(), &listeners_),
      cm_connections_(cm, roce.most_depth, hooks, &wire->interface(), &listeners_) {}

void Connections::start() {
  general_.emplace(cm_options_, &wire_);
  side_.use(&*general_);
  listeners_.use(&manager());
  resolver_.use(&manager());
  cm_connections_.use(&*general_);
}

// ---- connecting

CmBinding& Connections::open(verbs::QueuePair& qp, State stage, const ConnectParams& p,
                             std::uint32_t ord, Instant due) {
  Binding& b = bindings_.open(qp);
  b.stage = stage;
  b.own = p;
  b.depth = depth_of(ord, most_depth_);
  b.psn = p.psn.value_or(
      static_cast<std::uint32_t>(siphash24(cm_options_.key, {qp.number(), ++psns_, 0})) &
      ib::kMask24);
  bindings_.deadlines().set(b, due);
  return b;
}

// Removes the binding and releases the number of a destroyed queue pair.
void Connections::drop(Binding& b) {
  if (b.qp == nullptr) {
    qps_.release(b.number);
    side_.release(b.number);
  }
  bindings_.close(b);
}

ib_cm::QpValues Connections::values_of(const Binding& b, std::uint32_t ird,
                                       const ConnectParams& p) const {
  ib_cm::QpValues v;
  v.qpn = b.number;
  v.psn = ib::Psn(b.psn);
  v.responder_resources = depth_of(ird, most_depth_);
  v.initiator_depth = static_cast<std::uint8_t>(b.depth);
  v.rnr_retry = p.rnr_retry;
  const verbs::Service service = b.qp->state.service();
  v.srq = service == verbs::Service::XrcReceive || b.qp->rq.shared() != nullptr;
  v.credits = p.flow_control.value_or(tells_credits_ && !v.srq && !verbs::is_xrc(service));
  if (service == verbs::Service::XrcSend) v.responder_resources = v.rnr_retry = 0;
  return v;
}

Result<void> Connections::connect(verbs::QueuePair& qp, const SocketAddress& to,
                                  const ConnectParams& p, Instant now) {
  if (auto wrong = wrong_with(bindings_, qp, p, ib_cm::kReqConsumer)) return *wrong;
  auto made = to_ask(wire_.interface(), listeners_, cm_options_, to, p, now);
  if (!made) return made.error();
  auto asked = std::make_unique<CmRequest>(std::move(*made));
  ib_cm::Connect& what = asked->what;
  what.extensions = cm_options_.extensions;
  Binding& b = open(qp, State::Asking, p, p.ord, asked->give_up);
  what.qp = values_of(b, p.ird, p);
  const bool xrc = qp.state.service() == verbs::Service::XrcSend;
  what.transport = xrc ? ib_cm::Transport::Extended : ib_cm::Transport::Rc;
  b.asked = std::move(asked);
  if (!ask(b, now)) {
    drop(b);
    return Error{Errc::no_memory,
                 "the limit of connections is reached (pending or in time-wait): try again later"};
  }
  if (qp.state == QpState::Reset) move(side_, qp, to_init(p.ird), now);
  return {};
}

// Sends the REQ, as often as necessary. False: there is no room.
bool Connections::ask(Binding& b, Instant now) {
  const auto handle = cm().connect(b.asked->what, b.asked->data.view(), now);
  if (!handle.ok()) return false;
  try {
    bindings_.name(b, *handle);
  } catch (const std::bad_alloc&) {
    cm().abandon(*handle, now);
    return false;
  }
  return true;
}

// ---- answering

Result<void> Connections::accept(ib_cm::Handle handle, verbs::QueuePair& qp, const ConnectParams& p,
                                 Instant now) {
  if (auto wrong = wrong_with(bindings_, qp, p, ib_cm::kRepPrivate)) return *wrong;
  const ib_cm::Connection* const c = manager().find(handle);
  if (c == nullptr || c->state != ib_cm::State::ReqReceived) {
    return Error{
        Errc::closed,
        "the connection request is no longer pending: the peer gave up or it was answered"};
  }
  const std::uint32_t ord = std::min<std::uint32_t>(p.ord, c->offered.responder_resources);
  Binding& b = open(qp, State::Accepting, p, ord, now + p.timeout);
  const std::uint32_t ird = std::min<std::uint32_t>(p.ird, c->offered.initiator_depth);
  try {
    bindings_.name(b, handle);
  } catch (const std::bad_alloc&) {
    drop(b);
    throw;
  }
  wire_.begin_sending();
  const bool was_reset = qp.state == QpState::Reset;
  if (was_reset) move(side_, qp, to_init(ird), now);
  ib_cm::QpValues peer = c->offered;
  peer.initiator_depth = depth_of(ird, most_depth_);
  // The consumer may send as soon as it has accepted, as with a kernel.
  const QpChange rtr = to_rtr(c->addresses, peer, c->path, qp.number(), b.psn, b.own);
  const QpChange rts = to_rts(c->offered, c->path, b.depth, b.own);
  if (!move(side_, qp, agreed(rtr, c->extensions), now) || !move(side_, qp, rts, now)) {
    bindings_.name(b, 0);
    drop(b);
    QpChange back;
    back.to = QpState::Reset;
    if (was_reset) move(side_, qp, back, now);
    return Error{Errc::no_memory, "cannot move the queue pair to RTR and RTS"};
  }
  context_of(qp).tells_first_request = true;
  cm().accept(handle, values_of(b, ird, p), p.private_data, now);
  b.answered = true;
  general_->transmit_now(now);
  return {};
}

void Connections::reject(ib_cm::Handle handle, ByteView private_data, Instant now) {
  const ib_cm::Connection* const c = manager().find(handle);
  if (c != nullptr && c->state >= ib_cm::State::SidrSent) {
    manager().sidr().answer(
        handle, {ib_cm::SidrStatus::Rejected},
        private_data.first(std::min(private_data.size(), ib_cm::kSidrRepPrivate)), now);
  } else {
    cm().reject(handle, ib_cm::Reason::Consumer,
                private_data.first(std::min(private_data.size(), ib_cm::kRejPrivate)), now);
  }
  general_->transmit_now(now);
}

void Connections::refuse_requests(Instant now) {
  if (!general_) return;
  cm().abandon_requests(now);
  general_->transmit_now(now);
}

// ---- ends

void Connections::disconnect(verbs::QueuePair& qp, Instant now) {
  Binding* const b = bindings_.of(qp);
  if (b == nullptr) return;
  if (b->stage == State::Asking || b->stage == State::Accepting) {
    cm().abandon(b->handle, now);
    end(*b, CmEvent::Kind::ConnectFailed, Errc::closed,
        "the connection was closed before it was established", now);
  } else if (b->stage == State::Up) {
    b->stage = State::Ending;
    cm().disconnect(b->handle, {}, now);
    side_.fail(qp);
  }
  general_->transmit_now(now);
}

void Connections::abort(verbs::QueuePair& qp, Instant now) {
  Binding* const b = bindings_.of(qp);
  if (b == nullptr || b->stage == State::Over) return;
  const bool up = b->stage == State::Up || b->stage == State::Ending;
  cm().abandon(b->handle, now);
  end(*b, up ? CmEvent::Kind::Failed : CmEvent::Kind::ConnectFailed, Errc::closed,
      "aborted by the local program", now);
  general_->transmit_now(now);
}

bool Connections::abort_silently(const verbs::QueuePair& qp, bool goes, Instant now) {
  Binding* const b = bindings_.of(qp);
  if (b == nullptr) return false;
  if (b->handle == 0) {
    bindings_.close(*b);
    return false;
  }
  if (b->stage != State::Over) {
    cm().abandon(b->handle, now);
    general_->transmit_now(now);
  }
  b->stage = State::Over;
  b->untold.reset();
  b->asked.reset();
  bindings_.deadlines().set(*b, Instant::never());
  if (goes) b->qp = nullptr;
  return true;
}

bool Connections::asks_out(const verbs::QueuePair& qp) const {
  const Binding* const b = bindings_.of(qp);
  return b != nullptr && b->asked != nullptr &&
         !wire_.interface().is_own(b->asked->what.addresses.remote);
}

// ---- looking

std::size_t Connections::leaving(bool also_living) {
  if (!general_) return 0;
  std::size_t n = general_->wants_to_send() ? 1 : 0;
  n += cm_connections_.leaving(also_living);
  bindings_.for_each([&](const Binding& b) {
    if ((b.qp != nullptr && !also_living) || b.handle == 0) return;
    const ib_cm::Connection* const c = manager().find(b.handle);
    n += c != nullptr && c->state == ib_cm::State::DreqSent;
  });
  return n;
}

void Connections::fill_stats(EngineStats* all) const {
  const CmConnections::Counters& agreed = cm_connections_.counters();
  all->connections_opened += counters_.opened + agreed.opened;
  all->connections_closed += counters_.closed + agreed.closed;
  all->connections_failed += counters_.failed + agreed.failed;
  RoceHostStats* const out = &all->roce;
  out->numbers_in_time_wait = side_.contexts().resting();
  if (!general_) return;
  const ib_cm::Counters& c = general_->manager().counters();
  out->cm_received = c.received;
  out->cm_sent = c.sent;
  out->cm_resent_on_timeout = c.repeated;
  out->cm_resent_on_request = c.answered;
  out->cm_stale = c.stale;
  all->peers_denied += c.denied;
  all->peers_over_limit += c.over_limit;
  for (const std::uint64_t n : c.drops) out->cm_dropped += n;
  for (const std::uint64_t n : general_->statistics().drops) out->cm_dropped += n;
  out->tx_unroutable += general_->statistics().unroutable;
}

}  // namespace urnic::roce
