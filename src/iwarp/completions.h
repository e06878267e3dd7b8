// What the consumer learns of its work: completions, flushes, and the state a queue pair is left
// in.
#pragma once

#include "iwarp/events.h"
#include "verbs/queue_pair.h"

namespace urnic::iwarp {

class Completions {
 public:
  explicit Completions(Hooks* hooks) : hooks_(hooks) {}

  void post(verbs::QueuePair& qp, const verbs::Completion& completion);
  void post(verbs::QueuePair& qp, const verbs::StoredSends& sends);
  // What is outstanding ends with the state; posts that came while it was moved, or later, as well.
  void enter_error(verbs::QueuePair& qp, verbs::Status first);
  void flush(verbs::QueuePair& qp, verbs::Status first);
  // Work posted in an error state completes as flushed.
  void flush_posted(verbs::QueuePair& qp);
  // A completion queue has overrun since this was asked the last time (E-47).
  bool take_overrun() {
    const bool is = overrun_;
    overrun_ = false;
    return is;
  }

 private:
  void notify(verbs::CompletionQueue::Notify what, verbs::CompletionQueue* cq);

  Hooks* hooks_;
  bool overrun_ = false;
};

}  // namespace urnic::iwarp
