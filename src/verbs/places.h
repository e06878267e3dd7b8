// Counts the requests that occupy a place in a work queue: from posting until their completion, or
// a later one of the queue, has been polled. So a completion queue with room for all the places of
// the queues on it never overruns. A request without a completion frees its place as soon as it is
// done, unless an earlier completion has not been polled yet.
//
// Indices are those of the queue. The engine calls report() before it moves the queue's head; the
// polling thread calls poll() under the lock of the completion queue; the posting thread calls
// oldest().
#pragma once

#include <atomic>
#include <cstdint>

namespace urnic::verbs {

class Places {
 public:
  // Everything before `end` is done, and the last of it has a completion.
  void report(std::uint32_t end) {
    // No other thread polls now, and requests that finished without a completion since are free.
    if (all_polled()) polled_.store(end - 1, std::memory_order_release);
    reported_.store(end, std::memory_order_release);
  }
  // The completion before `end` has been polled.
  void poll(std::uint32_t end) { polled_.store(end, std::memory_order_release); }
  // Frees all places before `end`: their completions will not be polled, or were discarded.
  void clear(std::uint32_t end) {
    reported_.store(end, std::memory_order_release);
    poll(end);
  }
  // Index of the oldest occupied place. `head`: of the queue, loaded (acquire) before.
  std::uint32_t oldest(std::uint32_t head) const {
    const std::uint32_t reported = reported_.load(std::memory_order_acquire);
    const std::uint32_t polled = polled_.load(std::memory_order_acquire);
    return polled == reported ? head : polled;
  }
  bool all_polled() const {
    return polled_.load(std::memory_order_acquire) == reported_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> reported_{0}, polled_{0};
};

}  // namespace urnic::verbs
