#include "roce/side.h"

#include <new>
#include <utility>

#include "roce/receive_wait.h"
#include "roce/xrc.h"

namespace urnic::roce {

using verbs::QpState;

namespace {

ib::ServiceType type_of(verbs::Service s) {
  if (s == verbs::Service::Uc) return ib::ServiceType::Uc;
  if (verbs::is_xrc(s)) return ib::ServiceType::Xrc;
  return s == verbs::Service::Ud ? ib::ServiceType::Ud : ib::ServiceType::Rc;
}

// The attributes of a queue pair in Reset, new or not. Keeps from `made` what is fixed for its
// lifetime: number, protection domain, XRC end, loss rules.
ib::QpAttributes fresh_attributes(const Options& options, std::uint32_t mtu, verbs::Service service,
                                  const ib::QpAttributes& made) {
  ib::QpAttributes fresh;
  fresh.service = type_of(service);
  fresh.number = made.number;
  fresh.pd = made.pd;
  fresh.xrc = made.xrc;
  fresh.loss = made.loss;
  fresh.path_mtu = ib::path_mtu_of(mtu);
  fresh.tells_credits = options.tell_credits && !verbs::is_xrc(service);
  fresh.probe = options.probe;
  fresh.selective = options.selective && verbs::is_reliable(service);
  return fresh;
}

// An end of XRC has only one of the two queues.
verbs::WorkQueueSizes of_service(verbs::Service s, verbs::WorkQueueSizes sizes) {
  if (!verbs::is_xrc(s)) return sizes;
  sizes.shared_rq = nullptr;
  sizes.xrc_receives = s == verbs::Service::XrcReceive;
  (sizes.xrc_receives ? sizes.max_send_wr : sizes.max_recv_wr) = 0;
  return sizes;
}

bool drained(const Context& c) {
  return !c.requester || c.requester.drained();
}

// A number that changes with everything that the halves accept from the peer.
std::uint64_t heard(const Context& c) {
  std::uint64_t all = 0;
  if (const ib::Requester* const half = c.requester.rc()) {
    const ib::RequesterCounters& r = half->state().counters;
    all += r.acks + r.duplicates + r.ghosts + r.sequence_naks + r.implied_naks + r.rnr_naks;
  }
  if (const ib::Responder* const half = c.responder.rc()) {
    const ib::ResponderCounters& r = half->counters();
    all += r.requests + r.duplicates + r.out_of_sequence;
  }
  return all;
}

// True: the peer is gone. While requests are outstanding, the transport timer watches the peer.
bool is_silent(Context& c, Duration idle, Instant now) {
  const bool busy = c.attributes.ack_timeout != 0 && !c.requester.drained();
  return c.alive.on_time(heard(c), busy, idle, now);
}

// S-7: by Rtr the peer may have agreed already; in Rts it is asked unless it has agreed or refused.
void agree(Context& c, const QpChange& change, Instant now) {
  using Consent = QpChange::Consent;
  ib::QpAttributes& a = c.attributes;
  if (!a.selective) return;
  if (change.consent == Consent::Given) {
    a.peer_selective = true;
    a.peer_parts = change.parts;
  }
  if (change.consent == Consent::Refused) a.selective = false;
  const bool begins = change.to == QpState::Rts && c.qp->state == QpState::Rtr;
  if (begins && a.selective && !a.peer_selective) c.greeting.begin(now);
}

}  // namespace

Side::Side(const Options& options, QpWatcher* watcher, verbs::Completions* completions,
           net::Wire* wire, verbs::MemoryTable* memory)
    : options_(options),
      watcher_(watcher),
      wire_(*wire),
      memory_(*memory),
      paths_(wire),
      buffers_(wire),
      held_pool_(options.held_bytes),
      table_(options.key, options.most_queue_pairs),
      completions_(*completions) {}

// ---- queue pairs

std::unique_ptr<verbs::QueuePair> Side::create(verbs::Service service, verbs::PdId pd,
                                               const verbs::WorkQueueSizes& sizes,
                                               verbs::CompletionQueue* send,
                                               verbs::CompletionQueue* receive,
                                               const ib::LossRules* loss, std::uint32_t domain) {
  const std::uint32_t number = table_.open();
  if (number == 0) return nullptr;
  try {
    deadlines_.reserve(table_.size());
    const verbs::WorkQueueLayout layout{sizeof(ib::SendPart), 0, &pool_};
    auto qp = std::make_unique<verbs::QueuePair>(number, verbs::kIbRules, service,
                                                 of_service(service, sizes), layout, send, receive);
    auto context = std::make_unique<Context>(qp.get());
    ib::QpAttributes made;
    made.number = number;
    made.pd = pd;
    made.xrc = {service == verbs::Service::XrcReceive, domain, options_.xrc};
    made.loss = loss != nullptr ? *loss : options_.loss;
    context->attributes = fresh_attributes(options_, wire_.mtu(), service, made);
    const bool slows_down = options_.send.congestion != ib::CongestionRule::Off;
    context->path.marked = slows_down && verbs::is_reliable(service);
    table_.set(number, context.get());
    qp->transport = std::move(context);
    return qp;
  } catch (...) {
    table_.close(number);
    throw;
  }
}

void Side::destroy(std::unique_ptr<verbs::QueuePair> qp, Number number) {
  Context& c = context_of(*qp);
  memory_.unbind_windows_of(qp->number());
  forget_halves(c);
  if (number == Number::Rests) {
    table_.rest(qp->number());
  } else {
    table_.close(qp->number());
  }
}

// Stops sending and all waits, and deletes the halves.
void Side::forget_halves(Context& c) {
  plain_.forget_queue_pair();
  add(&statistics_, c);
  c.unreliable = 0;
  c.end_waiting();
  c.greeting.end();
  c.alive.end();
  c.marks = {};
  c.requester.reset();
  c.responder.reset();
  deadlines_.set(c, Instant::never());
  sending_.remove(c);
}

// ---- moves

Modified Side::modify(verbs::QueuePair& qp, const QpChange& wanted, Instant now) {
  Context& c = context_of(qp);
  QpChange change = wanted;
  const auto has = [&](std::uint32_t bit) { return (change.mask & bit) != 0; };
  const verbs::QpMove move = qp.state.judge(change.to, change.mask);
  if (!move.ok()) return modified_of(move.verdict);
  if (!has(verbs::kQpAttrPathMtu)) change.path_mtu = c.attributes.path_mtu;
  const std::uint32_t more = verbs::is_xrc(qp.state.service()) ? ib::kXrcEthBytes : 0;
  const std::uint32_t ip_mtu =
      has(verbs::kQpAttrAv) ? wire_.mtu_between(change.av.local, change.av.remote) : wire_.mtu();
  const ModifyLimits limits{ip_mtu - more, options_.most_depth};
  if (!values_fit(change, limits)) return Modified::BadValue;
  if (has(verbs::kQpAttrAv) && !wire_.interface().is_own(change.av.local)) {
    return Modified::BadValue;
  }
  if (qp.state == QpState::Sqd && change.to == QpState::Sqd) {
    constexpr std::uint32_t kAnyTime = verbs::kQpAttrState | verbs::kQpAttrAccess |
                                       verbs::kQpAttrMinRnrTimer | verbs::kQpAttrPort |
                                       verbs::kQpAttrPkeyIndex;
    if (has(~kAnyTime) && !drained(c)) return Modified::NotDrained;
    // The resources exist already, and the peer may still ask for their contents.
    if (has(verbs::kQpAttrMaxDestRdAtomic) &&
        change.responder_depth != c.attributes.responder_depth) {
      return Modified::Unsupported;
    }
  }
  begin_halves(c, change);
  agree(c, change, now);
  if (qp.state == QpState::Sqe && change.to == QpState::Rts) {
    flush_sends(c);  // requests posted so far are flushed with the failed one
    c.requester.resume();
  }
  qp.state.modify(change.to, change.mask);
  if (has(verbs::kQpAttrAv)) c.path.route = Route::Unknown;
  if (move.effect == verbs::QpEffect::FlushAll) {
    enter_error(c);
  } else if (move.effect == verbs::QpEffect::Discard) {
    discard(c);
  } else {
    if (c.requester) {
      if (drained(c) && c.requester.rc() != nullptr) c.requester.rc()->attributes_changed();
      c.tell_drained = change.to == QpState::Sqd &&
                       (c.tell_drained || (has(verbs::kQpAttrSqdNotify) && change.tell_drained));
      settle(c);
    }
    sending_.add(c);
    transmit_round(now);
  }
  return Modified::Ok;
}

// Stores the values, and chooses the half that the new state needs and does not have yet.
void Side::begin_halves(Context& c, const QpChange& change) {
  plain_.forget_queue_pair();
  apply(change, &c.attributes);
  if (change.to == QpState::Rtr && !c.responder) {
    c.responder.choose(c.attributes, c.qp, &memory_);
  }
  if (change.to == QpState::Rts && !c.requester) {
    c.requester.choose(c.attributes, c.qp, &memory_);
  }
}

namespace {

QpEvent event_of(ib::Verdict refusal) {
  if (refusal == ib::Verdict::RemoteAccess) return QpEvent::RefusedAccess;
  if (refusal == ib::Verdict::InvalidRequest || refusal == ib::Verdict::WrongDomain)
    return QpEvent::RefusedRequest;
  // reported by the receive's completion
  if (refusal == ib::Verdict::KeyStays) return QpEvent::Failed;
  return QpEvent::RefusedFault;
}

}  // namespace

// To be called after anything that may have changed a half's state.
void Side::settle(Context& c) {
  verbs::QueuePair& qp = *c.qp;
  c.requester.report([&](const verbs::Completion& done) { completions_.post(qp, done); });
  const bool refused = c.responder.failed();
  if (!refused && c.requester.failed() && !verbs::is_reliable(qp.state.service())) {
    return enter_sqe(c);
  }
  if (refused || c.requester.failed()) {
    if (qp.state == QpState::Error) return;
    qp.state.advance(QpState::Error);
    enter_error(c);
    watcher_->on_qp_event(qp, refused ? event_of(c.responder.failure()) : QpEvent::Failed);
    return;
  }
  if (c.requester && c.tell_drained && qp.state == QpState::Sqd && drained(c)) {
    c.tell_drained = false;
    watcher_->on_qp_event(qp, QpEvent::Drained);
  }
  const Instant work = earlier(c.requester.due(), c.parked_until);
  deadlines_.set(c, earlier(work, earlier(c.greeting.due(), c.alive.due())));
}

// ---- ends

bool Side::fail(verbs::QueuePair& qp) {
  if (qp.state == QpState::Error) return false;
  if (!qp.state.advance(QpState::Error).ok() && !qp.state.modify(QpState::Error).ok()) return false;
  enter_error(context_of(qp));
  return true;
}

// Called in Error. Completes everything outstanding and sends the peer nothing more. Packets held
// past a gap are not carried out: their memory may have other users (S-8).
void Side::enter_error(Context& c) {
  flush(c);
  if (c.responder.rc() != nullptr) c.responder.rc()->forget_held();
  c.end_waiting();
  c.greeting.end();
  c.alive.end();
  deadlines_.set(c, Instant::never());
  sending_.remove(c);
}

// A UC or UD request cannot be sent: it completes with its status, those after it are flushed, and
// receives go on (IB-114).
void Side::enter_sqe(Context& c) {
  if (!c.qp->state.advance(QpState::Sqe).ok()) return;  // already in Sqe, or in Error
  c.tell_drained = false;
  flush_sends(c);
}

void Side::flush_sends(Context& c) {
  // A queue pair that has not reached Rts can have posts, too.
  if (!c.requester) c.requester.choose(c.attributes, c.qp, &memory_);
  const auto post = [&](const verbs::Completion& done) { completions_.post(*c.qp, done); };
  if (!c.requester.awaited()) return c.requester.flush(post);
  if (c.qp->sq.empty()) return;
  // None of them has been sent. They must be flushed even without memory for a requester.
  ib::Requester unused(c.attributes, options_.send, &c.qp->sq, &memory_);
  unused.stop();
  unused.flush(post);
}

void Side::flush(Context& c) {
  verbs::QueuePair& qp = *c.qp;
  completions_.flush(qp, [&](auto&& post) {
    flush_sends(c);
    while (qp.rq.posted() != 0) {
      verbs::Completion done;
      done.wr_id = qp.rq.wqe(qp.rq.head()).wr_id;
      done.status = verbs::Status::Flushed;
      done.receive = true;
      qp.rq.pop();
      post(done);
    }
    if (c.attributes.xrc.receives) qp.rq.turn_to(nullptr);
  });
}

// Called in Reset: returns to the state after creation (IB-106).
void Side::discard(Context& c) {
  verbs::QueuePair& qp = *c.qp;
  forget_halves(c);
  qp.sq.clear();
  qp.rq.reset(0);
  for (verbs::CompletionQueue* cq : {qp.send_cq, qp.receive_cq}) {
    if (cq != nullptr) cq->forget(qp.number());
  }
  forget_received(c);
  memory_.unbind_windows_of(qp.number());
  qp.last_receive_reported = false;
  c.tell_drained = c.established_reported = c.tells_first_request = false;
  c.path.route = Route::Unknown;
  c.attributes = fresh_attributes(options_, wire_.mtu(), qp.state.service(), c.attributes);
}

// ---- work and time

void Side::sends_posted(verbs::QueuePair& qp, Instant now) {
  Context& c = context_of(qp);
  ahead_.context(&c);
  ahead_.halves(&c);
  if (qp.state == QpState::Sqe) return flush_sends(c);
  if (verbs::flushes_posts(qp.state)) return flush(c);
  if (!c.requester) return;  // before Rts
  sending_.add(c);
  transmit_round(now);
}

void Side::receives_posted(verbs::QueuePair& qp, Instant now) {
  Context& c = context_of(qp);
  if (verbs::rights(qp.state).flush_receives) return flush(c);
  if (c.parked_until.is_never()) return;
  look_for_receive(&completions_, c, now);
  settle(c);
  sending_.add(c);
  transmit_round(now);
}

void Side::run_timers(Instant now) {
  if (general_ != nullptr) general_->run_timers(now);
  while (deadlines_.next() <= now) {
    Context& c = *deadlines_.take();
    // Only reliable services have deadlines.
    if (c.requester.rc() != nullptr) c.requester.rc()->on_time(now);
    if (c.parked_until <= now) stop_waiting(c);
    c.greeting.on_time(now);
    if (is_silent(c, options_.keepalive, now) && c.qp->state.advance(QpState::Error).ok()) {
      enter_error(c);
      watcher_->on_qp_event(*c.qp, QpEvent::Silent);
      continue;
    }
    sending_.add(c);
    settle(c);
  }
}

void Side::keep_alive(verbs::QueuePair& qp, Instant now) {
  if (options_.keepalive == Duration::zero() || qp.state.service() != verbs::Service::Rc) return;
  Context& c = context_of(qp);
  c.alive.begin(options_.keepalive, now);
  settle(c);
}

bool Side::goes_out(const verbs::QueuePair& qp) const {
  const Context& c = context_of(qp);
  if (qp.state.service() == verbs::Service::Ud) return false;
  return c.responder && !wire_.interface().is_own(c.attributes.av.remote);
}

Statistics Side::statistics() const {
  Statistics s = statistics_;
  table_.for_each([&](const Context& c) { add(&s, c); });
  return s;
}

}  // namespace urnic::roce
