// An intrusive queue with many producers and one consumer (the algorithm of Dmitry Vyukov), for
// doorbells: application threads push a queue pair, its engine pops it.
//
// push: any thread, one atomic exchange, never waits. pop: one thread at a time. An element may be
// in at most one queue, and only once; the queue does not own it. Elements are popped in the order
// in which their pushes took effect. Between the two steps of a push, pop sees neither that element
// nor later ones, so "nullptr" means "nothing yet". After a push has returned, the next pop sees
// it, and a producer wakes the consumer only after push has returned.
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>

namespace urnic {

class MpscNode {
 public:
  MpscNode() = default;
  MpscNode(const MpscNode&) = delete;
  MpscNode& operator=(const MpscNode&) = delete;

 private:
  template <class T>
  friend class MpscQueue;
  std::atomic<MpscNode*> next_{nullptr};
};

template <class T>
class MpscQueue {
 public:
  MpscQueue() : newest_(&stub_), oldest_(&stub_) {}
  MpscQueue(const MpscQueue&) = delete;
  MpscQueue& operator=(const MpscQueue&) = delete;

  void push(T* element) {
    static_assert(std::is_base_of_v<MpscNode, T>);
    link(element);
  }

  // Returns the oldest element, or nullptr. It may be pushed again at once.
  T* pop() {
    MpscNode* oldest = oldest_.load(std::memory_order_relaxed);
    MpscNode* next = oldest->next_.load(std::memory_order_acquire);
    if (oldest == &stub_) {
      if (next == nullptr) return nullptr;
      oldest = next;
      oldest_.store(oldest, std::memory_order_relaxed);
      next = oldest->next_.load(std::memory_order_acquire);
    }
    if (next == nullptr) {
      // The last element can only be removed if another one follows it; if no push is in progress,
      // the stub is appended.
      if (newest_.load(std::memory_order_acquire) != oldest) return nullptr;
      link(&stub_);
      next = oldest->next_.load(std::memory_order_acquire);
      if (next == nullptr) return nullptr;
    }
    oldest_.store(next, std::memory_order_relaxed);
    return static_cast<T*>(oldest);
  }

  // May be called from any thread. While others push or pop it is only a hint, but it never returns
  // true after a completed push unless that element has been popped. The stub can be the newest
  // element while others wait; it is both oldest and newest only if it is alone.
  bool looks_empty() const {
    return newest_.load(std::memory_order_acquire) == &stub_ &&
           oldest_.load(std::memory_order_relaxed) == &stub_;
  }

 private:
  void link(MpscNode* node) {
    node->next_.store(nullptr, std::memory_order_relaxed);
    MpscNode* before = newest_.exchange(node, std::memory_order_acq_rel);
    before->next_.store(node, std::memory_order_release);
  }

  static constexpr std::size_t kLine = 64;
  alignas(kLine) std::atomic<MpscNode*> newest_;  // producers
  alignas(kLine) std::atomic<MpscNode*> oldest_;  // written only by the consumer
  MpscNode stub_;
};

}  // namespace urnic
