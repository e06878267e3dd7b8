// Completions that the program does not see yet, because `urnic run --verbs-faults` makes them late
// or splits a burst.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "base/time.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

struct Cq;

class HeldCompletions {
 public:
  // Null unless a plan has faults of completions.
  static std::unique_ptr<HeldCompletions> make();
  ~HeldCompletions();

  // As CompletionQueue::poll and ::arm.
  int poll(Cq& cq, std::span<Completion> out);
  void arm(Cq& cq, bool solicited_only);

 private:
  struct Held {
    Completion completion;
    Instant due;
  };
  void take(CompletionQueue& queue, std::size_t most, Instant now);
  void keep(CompletionQueue& queue, const Completion& c, Instant now);
  int hand_out(std::span<Completion> out, Instant now);
  // Tells the program about an overrun that a plan has caused.
  static void report_overrun(Cq& cq);

  std::mutex mutex_;
  // bound: completions that were polled early; limit: the requests that the program knows to be
  // outstanding; beyond: it posts no more before it has seen these; test:
  // Injected.ALateCompletionKeepsTheOrder
  std::deque<Held> waiting_;
  // No completion comes any more: the queue has overrun, or belongs to the parent.
  bool ended_ = false, must_report_ = false;
  // The program wants an event. Stays true after an event of the engine: an event too many does no
  // harm, one too few makes a program sleep for ever.
  std::atomic<bool> armed_{false};
};

}  // namespace urnic::dropin
