#include "verbs/completions.h"

#include <new>

namespace urnic::verbs {

void Completions::notify(CompletionQueue::Notify what, CompletionQueue* cq) {
  if (what == CompletionQueue::Notify::Overrun) {
    overrun_ = true;  // handled later: the caller is in the middle of a queue pair
    hooks_->on_cq_overrun(cq);
  } else if (holds_ != 0 && held_ < sleepers_.size()) {
    sleepers_[held_++] = cq;
  } else {
    hooks_->on_completion(cq);
  }
}

void Completions::report_last_receive(QueuePair& qp) {
  if (qp.rq.shared() == nullptr || qp.last_receive_reported) return;
  try {
    hooks_->on_cm_event({.kind = CmEvent::Kind::LastReceive, .qp = &qp});
    qp.last_receive_reported = true;
  } catch (const std::bad_alloc&) {
    // The queue pair's state carries the same information.
  }
}

void Completions::wake_sleepers() {
  for (std::uint32_t i = 0; i < held_; ++i) hooks_->on_completion(sleepers_[i]);
  held_ = 0;
}

}  // namespace urnic::verbs
