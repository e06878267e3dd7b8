// Completion queue 240: a bounded ring of CQEs shared by any number of send and receive queues
// (specification 1.6). Thread safe; the spinlock is uncontended in the usual case (E-28).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/spinlock.h"
#include "verbs/places.h"
#include "verbs/wqe_store.h"

namespace urnic::verbs {

// CQE 242/542. One of the partial kind completes several Sends, whose data lies in their WQEs until
// they are polled (9.4, Fig 14).
struct alignas(64) Cqe {
  Completion completion;
  std::uint32_t qp_number = 0;
  std::uint32_t references = 1;  // reference counter 544
  WqeStore* stored = nullptr;    // indicator 546: null is the full kind
  std::uint32_t position = 0;    // of the next WQE in `stored`; or behind the one in `places`
  std::uint32_t source_qp = 0;   // of a datagram, whose it was
  Places* places = nullptr;      // where the request has its place
};
static_assert(sizeof(Cqe) == 64, "a cache line");

class CompletionQueue {
 public:
  // bound: completion queue; limit: its requested size, up to 16777216; beyond: overrun: it and its
  // queue pairs go to error, with an event (E-47); `resize` enlarges it; test:
  // CompletionQueue.OverrunIsReportedAfterWhatFitted,
  // Overrun.CausedByAPostEndsTheQueuePairWithinThePost,
  // CqOverrun.TheQueueAndEveryQueuePairOnItFailWithAnEvent
  explicit CompletionQueue(std::uint32_t depth);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // What the pusher must do: wake a sleeper, or not; or see to the queue pairs, once.
  enum class Notify : std::uint8_t { No, Yes, Overrun };
  // Append. When the ring is full the queue overruns (E-47): this CQE and all later ones are lost,
  // those in the ring stay as they are, and the queue is of no use any more.
  Notify push(const Cqe& cqe);
  // The one CQE of a run of Sends, already lent; null where they came from a shared queue.
  Notify push(const StoredSends& sends, std::uint32_t qp_number, Places* places = nullptr);
  // Up to out.size() completions, oldest first, all of the full kind: what a partial CQE left in a
  // WQE is fetched here, and the CQE leaves the ring when its reference counter is 0. -1
  // after an overrun once the ring is drained.
  int poll(std::span<Cqe> out);
  // Room for `depth` from now on, with what is in it. False, and nothing has changed: more is in
  // it.
  bool resize(std::uint32_t depth);
  // A queue pair is reset: its completions vanish, those of others stay as they are.
  void forget(std::uint32_t qp_number);
  // The queue of these places goes; its completions stay.
  void leave(const Places& places);
  // Ask for one notification at the next CQE (or the next solicited or failed one).
  void arm(bool solicited_only);
  // Is there something to poll? A hint, without the lock.
  bool looks_empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire);
  }
  // For tests: CQEs in the ring, and the oldest one as it lies there; false when there is none.
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
