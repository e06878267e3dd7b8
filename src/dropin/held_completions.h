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
  int poll(CompletionQueue& queue, std::span<Completion> out);
  void arm(CompletionQueue& queue, bool solicited_only);

 private:
  struct Held {
    Completion completion;
    Instant due;
  };
  int take(CompletionQueue& queue, std::size_t most, Instant now);
  void keep(CompletionQueue& queue, const Completion& c, Instant now);
  int hand_out(std::span<Completion> out, Instant now);

  std::mutex mutex_;
  // bound: completions that were polled early; limit: the requests that the program knows to be
  // outstanding, because it posts no more before it has seen these
  std::deque<Held> waiting_;
  Instant last_;  // when the last one is due: the order is kept
  // The program wants an event. Stays true after an event of the engine: an event too many does no
  // harm, one too few makes a program sleep for ever.
  std::atomic<bool> armed_{false};
};

}  // namespace urnic::dropin
