#include "iwarp/completions.h"

#include "ddp_rdma/stream.h"

namespace urnic::iwarp {

void Completions::enter_error(verbs::QueuePair& qp, verbs::Status first) {
  const verbs::QpMove move = qp.state.advance(verbs::QpState::Error);
  if (move.effect == verbs::QpEffect::FlushAll) {
    flush(qp, first);
  } else {
    flush_posted(qp);
  }
}

void Completions::flush(verbs::QueuePair& qp, verbs::Status first) {
  ddp::flush(ddp::stream_of(qp), first, [&](const verbs::Completion& done) { post(qp, done); });
  if (qp.rq.shared() == nullptr || qp.last_receive_told) return;
  // Receives nobody has bound stay in the shared queue for others; this one takes no more.
  qp.last_receive_told = true;
  hooks_->on_cm_event({.kind = CmEvent::Kind::LastReceive, .qp = &qp});
}

void Completions::flush_posted(verbs::QueuePair& qp) {
  if (verbs::flushes_posts(qp.state)) flush(qp, verbs::Status::Flushed);
}

void Completions::post(verbs::QueuePair& qp, const verbs::Completion& completion) {
  verbs::CompletionQueue* cq = completion.receive ? qp.receive_cq : qp.send_cq;
  notify(cq->push(qp.cqe_of(completion)), cq);
}

void Completions::post(verbs::QueuePair& qp, const verbs::StoredSends& sends) {
  notify(qp.receive_cq->push(sends, qp.number(), qp.rq.places()), qp.receive_cq);
}

void Completions::notify(verbs::CompletionQueue::Notify what, verbs::CompletionQueue* cq) {
  using Notify = verbs::CompletionQueue::Notify;
  if (what == Notify::Yes) {
    if (holds_ && told_ < sleepers_.size()) {
      sleepers_[told_++] = cq;
    } else {
      hooks_->on_completion(cq);
    }
  }
  if (what != Notify::Overrun) return;
  overrun_ = true;  // not here: whoever completes is in the middle of a queue pair
  hooks_->on_cq_overrun(cq);
}

void Completions::tell_sleepers() {
  for (std::uint32_t i = 0; i < told_; ++i) hooks_->on_completion(sleepers_[i]);
  told_ = 0;
}

}  // namespace urnic::iwarp
