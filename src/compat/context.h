// An open device as a program sees it: verbs_context with what is ours behind it.
#pragma once

#include <atomic>

#include "compat/exported.h"
#include "compat/signalled_queue.h"

namespace urnic::compat {

// What is reported and kept to.
struct Limits {
  static constexpr int kQueuePairs = 65536, kCompletionQueues = 65536, kSharedQueues = 65536;
  static constexpr int kWork = 65536, kSges = 32, kInline = 4096;
  static constexpr int kCompletions = 1 << 20, kDomains = 1 << 20;
  static constexpr int kRegions = 1 << 19, kWindows = 1 << 19;  // of one table
};

struct Context {
  verbs_context verbs;  // first; its last member is the program's ibv_context
  SignalledQueue<ibv_async_event> async;
  std::atomic<int> users{0};  // objects made with it

  // Null with errno. The device is open.
  static ibv_context* make();
  static Context* of(ibv_context* c) {
    return reinterpret_cast<Context*>(reinterpret_cast<char*>(c) -
                                      offsetof(verbs_context, context));
  }
};

// How many of each there are, in this process (a child begins with its parent's, which it must not
// use and cannot get rid of).
struct Counts {
  std::atomic<int> queue_pairs{0}, completion_queues{0}, shared_queues{0}, domains{0};
  std::atomic<int> regions{0}, windows{0};
};
Counts& counts();

// One more of them, unless there are `most`.
inline bool count_up(std::atomic<int>& counter, int most) {
  if (counter.fetch_add(1) < most) return true;
  counter.fetch_sub(1);
  return false;
}

}  // namespace urnic::compat
