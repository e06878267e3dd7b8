// What the consumer learns of its work.
#pragma once

#include <cstdint>

#include "roce/hooks.h"
#include "verbs/queue_pair.h"

namespace urnic::roce {

class Completions {
 public:
  explicit Completions(Hooks* hooks) : hooks_(hooks) {}

  // Behind the request's leaving its queue, and before the next one's.
  // `source_qp`: of a datagram, whose it was.
  void post(verbs::QueuePair& qp, const verbs::Completion& completion,
            std::uint32_t source_qp = 0) {
    using Notify = verbs::CompletionQueue::Notify;
    verbs::CompletionQueue* cq = completion.receive ? qp.receive_cq : qp.send_cq;
    if (cq == nullptr) [[unlikely]]
      cq = qp.rq.shared()->xrc.completions;
    verbs::Cqe cqe = qp.cqe_of(completion);
    cqe.source_qp = source_qp;
    const Notify what = cq->push(cqe);
    if (what == Notify::Yes) hooks_->on_completion(cq);
    if (what != Notify::Overrun) return;
    overrun_ = true;  // not here: whoever completes is in the middle of a queue pair
    hooks_->on_cq_overrun(cq);
  }
  bool overrun_pending() const { return overrun_; }
  // A completion queue has overrun since this was asked the last time (E-47).
  bool take_overrun() {
    const bool is = overrun_;
    overrun_ = false;
    return is;
  }

 private:
  Hooks* hooks_;
  bool overrun_ = false;
};

}  // namespace urnic::roce
