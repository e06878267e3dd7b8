#include "sim/rd/rd_host.h"

#include "ib/receive_end.h"

namespace urnic::sim {

using verbs::Completion;
using verbs::QpState;
using verbs::Status;

RdHost::RdHost(verbs::MemoryTable* memory, const RdHooks& hooks) : memory_(memory), hooks_(hooks) {
  contexts_.reserve(kMaxContexts);
  queue_pairs_.reserve(kMaxQueuePairs);
}

// ---- objects

EeContext* RdHost::make_context(const EeAttributes& attributes) {
  if (contexts_.size() == kMaxContexts || context(attributes.number) != nullptr) return nullptr;
  return contexts_.emplace_back(std::make_unique<EeContext>(attributes, memory_)).get();
}

RdQueuePair* RdHost::make_queue_pair(const ib::QpAttributes& attributes, std::uint32_t rdd,
                                     verbs::SendQueue* sq, verbs::ReceiveQueue* rq) {
  const bool full = queue_pairs_.size() == kMaxQueuePairs;
  if (full || queue_pair(attributes.number) != nullptr) return nullptr;
  auto made = std::make_unique<RdQueuePair>(attributes, rdd, sq, rq, memory_);
  return queue_pairs_.emplace_back(std::move(made)).get();
}

EeContext* RdHost::context(std::uint32_t number) {
  for (const auto& ee : contexts_) {
    if (ee->attributes.number == number) return ee.get();
  }
  return nullptr;
}

RdQueuePair* RdHost::queue_pair(std::uint32_t number) {
  for (const auto& qp : queue_pairs_) {
    if (qp->attributes.number == number) return qp.get();
  }
  return nullptr;
}

RdQueuePair* RdHost::owner_of(const RdSender* sender) {
  for (const auto& qp : queue_pairs_) {
    if (&qp->sender == sender) return qp.get();
  }
  return nullptr;
}

// ---- completions

void RdHost::report(const RdQueuePair& qp, const Completion& c) const {
  if (hooks_.completion != nullptr) hooks_.completion(hooks_.context, qp, c);
}

void RdHost::flush_sends(RdQueuePair& qp) {
  if (!qp.sender.failed()) qp.sender.fail(Status::Flushed);
  qp.sender.flush([&](const Completion& c) { report(qp, c); });
}

void RdHost::flush(RdQueuePair& qp) {
  flush_sends(qp);
  if (qp.rq->shared() != nullptr) return;  // unused receives also belong to other queue pairs
  for (Completion c; qp.rq->has(qp.rq->head());) {
    ib::fail_receive(qp.rq, Status::Flushed, &c);
    report(qp, c);
  }
}

void RdHost::flush_posted() {
  for (const auto& qp : queue_pairs_) {
    const verbs::QpRights& r = verbs::rights(qp->state);
    if (r.flush_receives) {
      flush(*qp);
    } else if (r.flush_sends) {
      flush_sends(*qp);
    }
  }
}

// ---- state transitions

// Abandons the current work of this queue pair, in both directions.
void RdHost::give_up_work(RdQueuePair& qp) {
  for (const auto& ee : contexts_) {
    ee->requester.abort(&qp.sender);
    ee->responder.forget(&qp);
  }
}

verbs::QpMove RdHost::modify(RdQueuePair& qp, QpState to, std::uint32_t mask) {
  const verbs::QpMove move = judge_rd_move(qp.state, to, verbs::Mover::Consumer, mask);
  if (!move.ok()) return move;
  const QpState from = qp.state;
  qp.state = to;
  if (move.effect == verbs::QpEffect::FlushAll) {
    give_up_work(qp);
    flush(qp);
  } else if (move.effect == verbs::QpEffect::Discard) {
    give_up_work(qp);
    qp.rq->reset(0);
    qp.sender.forget();
  } else if (from == QpState::Sqe && to == QpState::Rts) {
    flush_sends(qp);  // posted meanwhile: flushed like the failed requests
    qp.sender.resume();
  }
  return move;
}

verbs::QpMove RdHost::modify(EeContext& ee, QpState to) {
  const verbs::QpMove move = judge_ee_move(ee.state, to, verbs::Mover::Consumer);
  if (!move.ok()) return move;
  ee.state = to;
  if (to == QpState::Error || to == QpState::Reset) {
    ee.requester.stop();
    ee.responder.stop();
    settle(ee);
  }
  return move;
}

// After a failed request: flushes the rest of the send queue; receives continue.
void RdHost::stop_sends(RdQueuePair& qp) {
  if (!judge_rd_move(qp.state, QpState::Sqe, verbs::Mover::Transport, 0).ok()) return;
  qp.state = QpState::Sqe;
  flush_sends(qp);
  if (hooks_.queue_pair_moved != nullptr) hooks_.queue_pair_moved(hooks_.context, qp);
}

void RdHost::stop_queue_pair(RdQueuePair& qp) {
  if (!judge_rd_move(qp.state, QpState::Error, verbs::Mover::Transport, 0).ok()) return;
  qp.state = QpState::Error;
  give_up_work(qp);
  flush(qp);
  if (hooks_.queue_pair_moved != nullptr) hooks_.queue_pair_moved(hooks_.context, qp);
}

void RdHost::stop_context(EeContext& ee) {
  if (!judge_ee_move(ee.state, QpState::Error, verbs::Mover::Transport).ok()) return;
  ee.state = QpState::Error;
  ee.responder.stop();
  if (hooks_.ee_context_moved != nullptr) hooks_.ee_context_moved(hooks_.context, ee);
}

// Handles the end of the current message.
void RdHost::settle(EeContext& ee) {
  const RdEnd end = ee.requester.take_end();
  RdQueuePair* const qp = owner_of(end.sender);
  switch (end.how) {
    case RdEnd::How::None:
    case RdEnd::How::PutBack:
      return;
    case RdEnd::How::Done:
      qp->sender.report([&](const Completion& c) { report(*qp, c); });
      return;
    case RdEnd::How::QueuePairStops:
      return stop_sends(*qp);
    case RdEnd::How::BothStop:
      stop_context(ee);
      return stop_queue_pair(*qp);
    case RdEnd::How::EeContextStops:
      stop_context(ee);
      if (qp != nullptr) stop_sends(*qp);
      return;
  }
}

// ---- received

// Follows the order of check() (check.h), with an EE context instead of the queue pair.
Outcome<ib::Half, ib::Drop> RdHost::check(const ib::PacketHeader& h, const IpAddress& source,
                                          const EeContext* ee) {
  if (h.bth.opcode.service() != ib::ServiceType::Rd || !h.row().known()) {
    return fail(ib::Drop::WrongService);
  }
  if (ee == nullptr) return fail(ib::Drop::NoQueuePair);
  const ib::Half half = h.row().response() ? ib::Half::Requester : ib::Half::Responder;
  const verbs::QpRights& rights = verbs::rights(ee->state);
  if (!(half == ib::Half::Requester ? rights.takes_responses : rights.takes_requests)) {
    return fail(ib::Drop::WrongState);
  }
  if (!ib::pkeys_match(h.bth.pkey, ee->attributes.pkey)) return fail(ib::Drop::BadPkey);
  if (source != ee->attributes.av.remote) return fail(ib::Drop::WrongAddress);
  return half;
}

void RdHost::take(const ib::ParsedPacket& packet, const IpAddress& source, Instant now) {
  EeContext* const ee = context(packet.header.ee_context);
  const auto half = check(packet.header, source, ee);
  if (!half.ok()) return drops_.count(half.error());
  if (*half == ib::Half::Responder) return take_request(*ee, packet);
  ee->requester.take(packet, now);
  settle(*ee);
}

void RdHost::take_request(EeContext& ee, const ib::ParsedPacket& packet) {
  Completion c;
  RdQueuePair* const to = queue_pair(packet.header.bth.dest_qp);
  const RdReceived r = ee.responder.take(packet, to, &c);
  if (r.completed) report(*r.whose, c);
  if (r.fails) stop_queue_pair(*r.whose);
}

// ---- sent

bool RdHost::next_response(ib::ResponsePacket* out, const EeContext** whose) {
  for (const auto& ee : contexts_) {
    if (!verbs::rights(ee->state).takes_requests || !ee->responder.next_response(out)) continue;
    *whose = ee.get();
    return true;
  }
  return false;
}

// Handles the first request of each send queue if the state of the EE context that it names does
// not allow it to begin.
void RdHost::judge_heads() {
  for (const auto& qp : queue_pairs_) {
    if (!verbs::rights(qp->state).begins_sends) continue;
    if (qp->sender.find_message()) {
      const EeContext* const ee = context(qp->sender.to().ee);
      const QpState state = ee == nullptr ? QpState::Reset : ee->state;
      if (fate_of_request(state) == RequestFate::Fails) qp->sender.fail(Status::LocalOperation);
    }
    if (qp->sender.failed()) {
      stop_sends(*qp);
    } else {
      qp->sender.report([&](const Completion& c) { report(*qp, c); });  // local operations
    }
  }
}

// Round robin, starting after the queue pair that was served last.
bool RdHost::begin_message(EeContext& ee, Instant now) {
  const std::size_t n = queue_pairs_.size();
  for (std::size_t i = 0; i != n; ++i) {
    RdQueuePair& qp = *queue_pairs_[(turn_ + i) % n];
    if (!verbs::rights(qp.state).begins_sends || qp.sender.not_before() > now) continue;
    if (!qp.sender.find_message() || qp.sender.to().ee != ee.attributes.number) continue;
    turn_ = (turn_ + i + 1) % n;
    ee.requester.begin(&qp.sender, qp.rdd);
    settle(ee);
    return true;
  }
  return false;
}

bool RdHost::next_request(Instant now, ib::RequestPacket* out, const EeContext** whose) {
  judge_heads();
  for (const auto& ee : contexts_) {
    const verbs::QpRights& rights = verbs::rights(ee->state);
    if (!rights.takes_responses) continue;
    for (;;) {
      const bool leaves = ee->requester.next_packet(now, out);
      settle(*ee);
      if (leaves) {
        *whose = ee.get();
        return true;
      }
      if (!ee->requester.idle() || !rights.begins_sends || !begin_message(*ee, now)) break;
    }
  }
  return false;
}

// ---- time

Instant RdHost::due() const {
  Instant first = Instant::never();
  for (const auto& ee : contexts_) first = earlier(first, ee->requester.due());
  for (const auto& qp : queue_pairs_) {
    if (qp->sender.waits()) first = earlier(first, qp->sender.not_before());
  }
  return first;
}

void RdHost::on_time(Instant now) {
  for (const auto& ee : contexts_) {
    ee->requester.on_time(now);
    settle(*ee);
  }
  for (const auto& qp : queue_pairs_) qp->sender.on_time(now);
}

}  // namespace urnic::sim
