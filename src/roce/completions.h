// What the consumer learns of its work.
#pragma once

#include "roce/hooks.h"
#include "verbs/queue_pair.h"

namespace urnic::roce {

class Completions {
 public:
  explicit Completions(Hooks* hooks) : hooks_(hooks) {}

  // Behind the request's leaving its queue, and before the next one's.
  void post(verbs::QueuePair& qp, const verbs::Completion& completion) {
    using Notify = verbs::CompletionQueue::Notify;
    verbs::CompletionQueue* const cq = completion.receive ? qp.receive_cq : qp.send_cq;
    const Notify what = cq->push(qp.cqe_of(completion));
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
