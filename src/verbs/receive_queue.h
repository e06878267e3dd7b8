// Receive queue RQ 212: the receives that a consumer posted, each named by its index in posting
// order. The transport chooses the index of the first receive: a transport with numbered Sends
// starts with the first number, so that the number of a Send is the index of its receive (9.1,
// The ring size is a power of two and the queue's limit is checked separately, so that an
// index stays valid when it wraps around (E-14).
//
// A queue pair may use a shared receive queue instead of WQEs of its own. Then this queue is the
// list of WQEs bound to its indices, without a gap from head() on.
//
// Two parties: one thread at a time posts (the caller holds the lock, E-28), and the engine does
// everything else under its ownership; neither waits for the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer_pool.h"
#include "verbs/places.h"
#include "verbs/shared_receive_queue.h"
#include "verbs/wqe_store.h"

namespace urnic::verbs {

class ReceiveQueue {
 public:
  enum class Post : std::uint8_t { Ok, Full, TooManySges, Shared };

  // `first`: index of the first receive.
  ReceiveQueue(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t first);
  // Uses `shared`, which outlives it; `pool` lends the list of bound WQEs.
  ReceiveQueue(SharedReceiveQueue* shared, BufferPool* pool, std::uint32_t first);
  // XRC: uses no shared queue at first; each message chooses one.
  ReceiveQueue(BufferPool* pool, std::uint32_t first);
  ~ReceiveQueue();
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  // `wr.sges` is copied. Local keys are checked when a Send arrives. Owns no memory before the
  // first post. A WQE whose completion has not been polled counts as posted (9.4). May run
  // concurrently with everything except reset().
  Post post(const RecvWr& wr);

  SharedReceiveQueue* shared() const { return shared_; }
  std::uint32_t max_sge() const { return max_sge_; }
  // WQEs that no Send has completed yet; with a shared queue, the bound ones.
  std::uint32_t posted() const { return tail_.load() - head(); }
  // Index of the oldest WQE, which completes next.
  std::uint32_t head() const { return head_.load(std::memory_order_relaxed); }
  // True if there is a WQE `index`, or claim() would bind one.
  bool has(std::uint32_t index) const {
    const std::uint32_t ahead = index - head();
    if (shared_ == nullptr) [[likely]]
      return ahead < posted();
    return ahead < posted() + shared_->available();
  }
  // Takes the WQE into use: binds all up to `index`; has(index) must hold. No-op without a shared
  // queue.
  void claim(std::uint32_t index) {
    if (shared_ != nullptr && index - head() >= posted()) bind_through(index);
  }

  // has(index) must hold.
  ReceiveWqe& wqe(std::uint32_t index) { return store_->wqe(position(index)); }
  const ReceiveWqe& wqe(std::uint32_t index) const { return store_->wqe(position(index)); }
  template <class Part>
  Part& part(std::uint32_t index) const {
    return store_->part<Part>(position(index));
  }
  std::span<const Sge> sges(std::uint32_t index) const { return store_->sges(position(index)); }
  // Its position in store().
  std::uint32_t position(std::uint32_t index) const {
    return shared_ == nullptr ? index : shared_position(index);
  }
  WqeStore* store() const { return store_; }

  // Removes the oldest WQE, which is done; posted() > 0. `lent`: its completion is read from it
  // when polled.
  void pop(bool lent = false) {
    if (shared_ == nullptr) [[likely]] {
      if (holds_ != 0) places_.report(head() + 1);
      head_.store(head() + 1, std::memory_order_release);
    } else {
      pop_shared(lent);
    }
  }
  // From now on own receives occupy their places (places.h); call it before the first post.
  void hold_places() { holds_ = pool_ == nullptr ? 1 : 0; }
  // Null for a shared queue.
  Places* places() { return holds_ != 0 ? &places_ : nullptr; }
  // Forgets which WQEs ended out of order (section 5); WQEs keep their indices (E-15).
  void forget_ends();
  // Discards everything posted and starts again at `first`.
  void reset(std::uint32_t first);
  // Stops receiving: the shared queue is not used any more and may be destroyed.
  void leave();
  // XRC: later binds use this queue (null: none). No WQE may be bound at the call.
  void turn_to(SharedReceiveQueue* queue);
  // XRC: called when that queue is destroyed. Its bound WQEs become free, without completions.
  void forget_queue(const SharedReceiveQueue* queue);

 private:
  void forget_posted();
  void bind_through(std::uint32_t index);
  void pop_shared(bool lent);
  std::uint32_t shared_position(std::uint32_t index) const {
    const std::uint32_t bound = posted(), ahead = index - head();
    return ahead < bound ? bound_[index & bound_mask_] : shared_->peek(ahead - bound);
  }
  void grow_bound();
  void release_bound();

  WqeStore* store_ = nullptr;
  // Sizes share one word, because there are many queues (P7).
  // bound: receive queue; limit: its requested size, up to 65536; beyond: posting fails with
  // queue_full; test: ReceiveQueue.HoldsItsLimitAndNoMore
  std::uint32_t max_wr_ : 25, max_sge_ : 6, holds_ : 1;
  // Indices. tail_ is stored and loaded sequentially consistent: the posting thread posts, then
  // checks whether the engine missed the receive; the engine sets that flag, then checks again for
  // a receive (QueuePair::starved).
  std::atomic<std::uint32_t> head_, tail_;
  std::uint32_t bound_mask_ = 0;          // of bound_
  SharedReceiveQueue* shared_ = nullptr;  // XRC: the one in use
  BufferPool* pool_ = nullptr;            // null: the receives are its own
  std::uint32_t* bound_ = nullptr;        // positions by index; null while none is bound
  Places places_;
};

}  // namespace urnic::verbs
