// An intrusive queue with many producers and one consumer (the algorithm of Dmitry Vyukov), for
// doorbells: application threads push a queue pair, its engine pops it.
//
// push: any thread, one atomic exchange, never waits. pop: one thread at a time. An element is in
// at most one queue and at most once; the queue owns nothing. Elements come out in the order in
// which their pushes took effect. Between the two steps of a push, pop sees nothing of that element
// nor of later ones, hence "nullptr" means "nothing yet": a push that has returned is seen by the
// first pop that happens after it, and a producer wakes the consumer only after push returned.
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

  // The oldest element, or nullptr. It may be pushed again at once.
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
      // The last one can go only when something stands behind it; if that is not a push under way,
      // the stub does.
      if (newest_.load(std::memory_order_acquire) != oldest) return nullptr;
      link(&stub_);
      next = oldest->next_.load(std::memory_order_acquire);
      if (next == nullptr) return nullptr;
    }
    oldest_.store(next, std::memory_order_relaxed);
    return static_cast<T*>(oldest);
  }

  // For any thread; only a hint while others push or pop, but never true after a push that happened
  // before, unless its element has been popped. The stub can be the newest while elements wait; it
  // is oldest and newest only when it is alone.
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
  alignas(kLine) std::atomic<MpscNode*> oldest_;  // written by the consumer only
  MpscNode stub_;
};

}  // namespace urnic
