// Completion queue 240: a bounded ring of CQEs shared by any number of send and receive queues
// (specification 1.6). Thread safe; the spinlock is usually uncontended (E-28).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/spinlock.h"
#include "verbs/places.h"
#include "verbs/wqe_store.h"

namespace urnic::verbs {

// CQE 242/542. A partial CQE completes several Sends, whose data stays in their WQEs until they are
// polled (9.4, Fig 14).
struct alignas(64) Cqe {
  Completion completion;
  std::uint32_t qp_number = 0;
  std::uint32_t references = 1;  // reference counter 544
  WqeStore* stored = nullptr;    // indicator 546: null for a full CQE
  std::uint32_t position = 0;    // the next WQE in `stored`; or one past the request in `places`
  std::uint32_t source_qp = 0;   // sender of a datagram
  Places* places = nullptr;      // of the request's queue
};
static_assert(sizeof(Cqe) == 64, "a cache line");

class CompletionQueue {
 public:
  // bound: completion queue; limit: its requested size, up to 16777216; beyond: overrun: it and its
  // queue pairs go to error, with an event (E-47); `resize` enlarges it; test:
  // CompletionQueue.OverrunIsReportedAfterTheCompletionsThatFitted,
  // Overrun.CausedByAPostEndsTheQueuePairWithinThePost,
  // CqOverrun.TheQueueAndEveryQueuePairOnItFailWithAnEvent
  explicit CompletionQueue(std::uint32_t depth);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // Duty of the pusher: nothing, wake a sleeper, or fail the queue pairs (reported once).
  enum class Notify : std::uint8_t { No, Yes, Overrun };
  // Appends a CQE. When the ring is full the queue overruns (E-47): this CQE and all later ones are
  // lost, those in the ring stay, and the queue cannot be used any more.
  Notify push(const Cqe& cqe);
  // Appends the one CQE of a run of Sends whose WQEs are already lent; `places` is null for a
  // shared queue.
  Notify push(const StoredSends& sends, std::uint32_t qp_number, Places* places = nullptr);
  // Takes up to out.size() completions, oldest first, all of the full kind: it fetches what a
  // partial CQE left in a WQE, and removes the CQE from the ring when its reference counter is 0
  // . Returns -1 after an overrun once the ring is drained.
  int poll(std::span<Cqe> out);
  // Changes the depth; the CQEs stay. False, and nothing has changed, if more than `depth` are in
  // it.
  bool resize(std::uint32_t depth);
  // Removes the completions of a queue pair that is reset; those of others stay.
  void forget(std::uint32_t qp_number);
  // Called when the queue of these places is destroyed; its completions stay.
  void leave(const Places& places);
  // Requests one notification at the next CQE (or the next solicited or failed one).
  void arm(bool solicited_only);
  // True if there is nothing to poll. A hint, read without the lock.
  bool looks_empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire);
  }
  // For tests: the number of CQEs in the ring, and the oldest one as it is stored there; false when
  // there is none.
  std::uint32_t size() const {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire);
  }
  bool peek(Cqe* out);
  std::uint32_t depth() const { return mask_.load(std::memory_order_relaxed) + 1; }
  bool overrun() const { return overrun_.load(std::memory_order_relaxed); }

 private:
  enum class Armed : std::uint8_t { No, Solicited, Any };
  Spinlock lock_;
  std::atomic<std::uint32_t> mask_;               // written under lock_
  std::atomic<std::uint32_t> head_{0}, tail_{0};  // free running
  std::atomic<bool> overrun_{false};
  Armed armed_ = Armed::No;
  std::unique_ptr<Cqe[]> ring_;
};

}  // namespace urnic::verbs
