// What the consumer learns of its work: completions, flushes, and the state a queue pair is left
// in.
#pragma once

#include <array>

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
  // Who sleeps is told behind what is sent: a consumer that takes its message and exits at once
  // shall not take its acknowledgement with it. From `hold` on they wait, until `let_go`.
  void hold() { holds_ = true; }
  void let_go() {
    holds_ = false;
    if (told_ != 0) [[unlikely]]
      tell_sleepers();
  }
  // A completion queue has overrun since this was asked the last time (E-47).
  bool take_overrun() {
    const bool is = overrun_;
    overrun_ = false;
    return is;
  }

 private:
  void notify(verbs::CompletionQueue::Notify what, verbs::CompletionQueue* cq);
  void tell_sleepers();

  Hooks* hooks_;
  bool overrun_ = false, holds_ = false;
  std::uint32_t told_ = 0;
  std::array<verbs::CompletionQueue*, 32> sleepers_;  // the first `told_`; others wait for nothing
};

}  // namespace urnic::iwarp
