// Reports to the consumer: completions of its work, and that a queue pair uses no more of its
// shared receive queue. All transports of an engine share one object.
//
// The caller holds the ownership of the engine.
#pragma once

#include <array>
#include <cstdint>

#include "verbs/hooks.h"
#include "verbs/queue_pair.h"

namespace urnic::verbs {

class Completions {
 public:
  explicit Completions(Hooks* hooks) : hooks_(hooks) {}
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  // Call after the request has left its queue, and before the next one leaves. `source_qp`: the
  // sender of a datagram.
  void post(QueuePair& qp, const Completion& completion, std::uint32_t source_qp = 0) {
    CompletionQueue* cq = completion.receive ? qp.receive_cq : qp.send_cq;
    if (cq == nullptr) [[unlikely]]
      cq = qp.rq.shared()->xrc.completions;
    Cqe cqe = qp.cqe_of(completion);
    cqe.source_qp = source_qp;
    const auto what = cq->push(cqe);
    if (what != CompletionQueue::Notify::No) notify(what, cq);
  }
  void post(QueuePair& qp, const StoredSends& sends) {
    const auto what = qp.receive_cq->push(sends, qp.number(), qp.rq.places());
    if (what != CompletionQueue::Notify::No) notify(what, qp.receive_cq);
  }

  // Completes all outstanding work: `work` calls the function it gets with each completion.
  // Receives in a shared queue that no queue pair has bound stay there for others.
  template <class Work>
  void flush(QueuePair& qp, Work&& work) {
    work([&](const Completion& done) { post(qp, done); });
    report_last_receive(qp);
  }

  // While it exists, sleepers are not woken; they are woken after all output has been sent.
  // Otherwise a consumer that takes its message and exits at once could prevent its
  // acknowledgement.
  class Hold {
   public:
    explicit Hold(Completions& c) : completions_(c) { ++c.holds_; }
    ~Hold() {
      if (--completions_.holds_ == 0 && completions_.held_ != 0) [[unlikely]]
        completions_.wake_sleepers();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Completions& completions_;
  };

  // True if a completion queue has overrun since the last take_overrun() (E-47).
  bool overrun_pending() const { return overrun_; }
  bool take_overrun() {
    const bool is = overrun_;
    overrun_ = false;
    return is;
  }

 private:
  void notify(CompletionQueue::Notify what, CompletionQueue* cq);
  void report_last_receive(QueuePair& qp);
  void wake_sleepers();

  Hooks* hooks_;
  bool overrun_ = false;
  unsigned holds_ = 0;
  std::uint32_t held_ = 0;
  // the first `held_` are used; more sleepers are woken at once
  std::array<CompletionQueue*, 32> sleepers_;
};

}  // namespace urnic::verbs
