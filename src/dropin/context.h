// An open device as a program sees it: verbs_context, followed by our own members.
#pragma once

#include <atomic>

#include "dropin/adapter.h"
#include "dropin/exported.h"
#include "dropin/signalled_queue.h"

namespace urnic::dropin {

// Limits that are reported and enforced.
struct Limits {
  static constexpr int kQueuePairs = 65536, kCompletionQueues = 65536, kSharedQueues = 65536;
  static constexpr int kWork = 65536, kSges = 32, kInline = 4096;
  static constexpr int kCompletions = 1 << 20, kDomains = 1 << 20;
  static constexpr int kRegions = 1 << 19, kWindows = 1 << 19;  // they share one table
  static constexpr int kAddressHandles = 1 << 20;
};

struct Context {
  verbs_context verbs;  // first; its last member is the program's ibv_context
  SignalledQueue<ibv_async_event> async;
  Adapter& adapter;
  std::atomic<int> users{1};  // objects created with it, and the program until it closes it
  const unsigned made_in = generation.load();

  explicit Context(Adapter& a) : verbs{}, adapter(a) {}
  // The device is open. Null with errno.
  static ibv_context* make(Adapter& adapter);
  static Context* of(ibv_context* c) {
    return reinterpret_cast<Context*>(reinterpret_cast<char*>(c) -
                                      offsetof(verbs_context, context));
  }
  // Removes one user; the last one destroys it.
  static void drop(ibv_context* c);
};

// True if the context, and with it every object created with it, belongs to the parent of this
// process. A thread that does not exist here may have held a lock of such an object, so when a
// child destroys one, the call succeeds and does nothing.
inline bool is_inherited(ibv_context* c) {
  return Context::of(c)->made_in != generation.load();
}

// Objects of different devices cannot be used together.
inline bool is_same_device(const ibv_context* a, const ibv_context* b) {
  return a->device == b->device;
}

// The object counters of the device.
inline Counts& counts(const ibv_context* c) {
  return Adapter::of(c).counts();
}

// Increments the counter unless it has reached `most`.
inline bool count_up(std::atomic<int>& counter, int most) {
  if (counter.fetch_add(1) < most) return true;
  counter.fetch_sub(1);
  return false;
}

}  // namespace urnic::dropin
