// An open device as a program sees it: verbs_context with what is ours behind it.
#pragma once

#include <atomic>

#include "dropin/adapter.h"
#include "dropin/exported.h"
#include "dropin/signalled_queue.h"

namespace urnic::dropin {

// What is reported and kept to.
struct Limits {
  static constexpr int kQueuePairs = 65536, kCompletionQueues = 65536, kSharedQueues = 65536;
  static constexpr int kWork = 65536, kSges = 32, kInline = 4096;
  static constexpr int kCompletions = 1 << 20, kDomains = 1 << 20;
  static constexpr int kRegions = 1 << 19, kWindows = 1 << 19;  // of one table
  static constexpr int kAddressHandles = 1 << 20;
};

struct Context {
  verbs_context verbs;  // first; its last member is the program's ibv_context
  SignalledQueue<ibv_async_event> async;
  Adapter& adapter;
  std::atomic<int> users{1};  // objects made with it, and the program until it closes it
  const unsigned made_in = generation.load();

  explicit Context(Adapter& a) : verbs{}, adapter(a) {}
  // Null with errno. The device is open.
  static ibv_context* make(Adapter& adapter);
  static Context* of(ibv_context* c) {
    return reinterpret_cast<Context*>(reinterpret_cast<char*>(c) -
                                      offsetof(verbs_context, context));
  }
  // One user less; the last one takes it away.
  static void drop(ibv_context* c);
};

// Of the parent of this process, as are all objects made with it. A lock of theirs may have been
// held by a thread that is not here, so a child that destroys them is answered, and nothing is
// done.
inline bool is_inherited(ibv_context* c) {
  return Context::of(c)->made_in != generation.load();
}

// Objects of one device are of no use with those of another.
inline bool is_same_device(const ibv_context* a, const ibv_context* b) {
  return a->device == b->device;
}

// How many there are of what the device counts.
inline Counts& counts(const ibv_context* c) {
  return Adapter::of(c).counts();
}

// One more of them, unless there are `most`.
inline bool count_up(std::atomic<int>& counter, int most) {
  if (counter.fetch_add(1) < most) return true;
  counter.fetch_sub(1);
  return false;
}

}  // namespace urnic::dropin
