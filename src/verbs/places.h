// How many requests of a work queue have a place in it: from posting until their completion, or a
// later one of the queue, has been polled. So a completion queue with room for all the places of
// the queues on it never overruns. A request without a completion gives its place back as soon as
// it is done, unless an earlier completion has yet to be polled.
//
// Indices as in the queue. The engine tells what is reported, before it moves the queue's head;
// whoever polls, under the lock of the completion queue, what is polled; whoever posts asks.
#pragma once

#include <atomic>
#include <cstdint>

namespace urnic::verbs {

class Places {
 public:
  // Everything before `end` is done, and there is a completion for the last of it.
  void report(std::uint32_t end) {
    // Nobody polls now, and what went without a completion since is free.
    if (all_polled()) polled_.store(end - 1, std::memory_order_release);
    reported_.store(end, std::memory_order_release);
  }
  // That completion has been polled.
  void poll(std::uint32_t end) { polled_.store(end, std::memory_order_release); }
  // What comes out is not polled, or was forgotten: all before `end` are free.
  void clear(std::uint32_t end) {
    reported_.store(end, std::memory_order_release);
    poll(end);
  }
  // The oldest index that is taken. `head`: of the queue, loaded (acquire) before.
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
