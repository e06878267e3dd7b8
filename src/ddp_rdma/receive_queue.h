// Receive queue RQ 212: the receives a consumer posted, each found by the MSN of the Send that will
// use it (9.1, R-88). The ring is a power of two and the queue's limit is checked apart, so that
// the index survives the wrap of the MSN (E-14).
//
// A queue pair may use a shared receive queue instead of WQEs of its own; then this is the list of
// those bound to its MSNs, head() on without a gap.
//
// Two parties: one thread at a time posts (the lock is the caller's, E-28), and the engine does
// everything else under its ownership; neither waits for the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ddp_rdma/buffer_pool.h"
#include "ddp_rdma/shared_receive_queue.h"
#include "ddp_rdma/wqe_store.h"

namespace urnic::ddp {

class ReceiveQueue {
 public:
  enum class Post : std::uint8_t { Ok, Full, TooManySges, Shared };

  // `first_msn` is 1 on the wire; anything else is for tests.
  ReceiveQueue(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t first_msn = 1);
  // On `shared`, which outlives it; `pool` lends the list of bound WQEs.
  ReceiveQueue(SharedReceiveQueue* shared, BufferPool* pool, std::uint32_t first_msn = 1);
  ~ReceiveQueue();
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  // `wr.sges` is copied. Local keys are checked when a Send arrives. Owns no memory before the
  // first post. A WQE that an unpolled completion still needs counts as posted (9.4). Safe beside
  // everything but reset().
  Post post(const RecvWr& wr);

  SharedReceiveQueue* shared() const { return shared_; }
  std::uint32_t max_sge() const { return max_sge_; }
  // WQEs not yet delivered into; of a shared queue the bound ones.
  std::uint32_t posted() const { return tail_.load() - head(); }
  // MSN of the oldest WQE: the next Send to be delivered.
  std::uint32_t head() const { return head_.load(std::memory_order_relaxed); }
  // Is there a WQE for `msn`, or would there be when it is claimed?
  bool has(std::uint32_t msn) const {
    const std::uint32_t ahead = msn - head();
    if (shared_ == nullptr) [[likely]]
      return ahead < posted();
    return ahead < posted() + shared_->available();
  }
  // A segment of `msn` is placed: WQEs are bound up to that one, has(msn). No-op without `shared`.
  void claim(std::uint32_t msn) {
    if (shared_ != nullptr && msn - head() >= posted()) bind_through(msn);
  }

  // The WQE of `msn`; has(msn) must hold.
  ReceiveWqe& wqe(std::uint32_t msn) { return store_->wqe(position(msn)); }
  const ReceiveWqe& wqe(std::uint32_t msn) const { return store_->wqe(position(msn)); }
  std::span<const Sge> sges(std::uint32_t msn) const { return store_->sges(position(msn)); }
  // Where it lies in store().
  std::uint32_t position(std::uint32_t msn) const {
    return shared_ == nullptr ? msn : shared_position(msn);
  }
  WqeStore* store() const { return store_; }

  // The oldest WQE is done; posted() > 0. `lent`: its completion is read from it when polled.
  void pop(bool lent = false) {
    if (shared_ == nullptr) [[likely]] {
      head_.store(head() + 1, std::memory_order_release);
    } else {
      pop_shared(lent);
    }
  }
  // What ended out of order is forgotten (section 5); WQEs stay with their MSNs (E-15).
  void forget_ends();
  // Forget everything posted and begin again at `first_msn`.
  void reset(std::uint32_t first_msn = 1);

 private:
  void bind_through(std::uint32_t msn);
  void pop_shared(bool lent);
  std::uint32_t shared_position(std::uint32_t msn) const {
    const std::uint32_t bound = posted(), ahead = msn - head();
    return ahead < bound ? bound_[msn & bound_mask_] : shared_->peek(ahead - bound);
  }
  void grow_bound();
  void release_bound();

  WqeStore* store_ = nullptr;
  std::uint32_t max_wr_, max_sge_;
  // MSNs. tail_ is stored and loaded sequentially consistent: who posts looks afterwards whether
  // the engine missed the receive, and the engine says so before it looks again
  // (QueuePair::starved).
  std::atomic<std::uint32_t> head_, tail_;
  SharedReceiveQueue* shared_ = nullptr;
  BufferPool* pool_ = nullptr;
  std::uint32_t* bound_ = nullptr;  // positions by MSN, while any is bound
  std::uint32_t bound_mask_ = 0;
};

}  // namespace urnic::ddp
