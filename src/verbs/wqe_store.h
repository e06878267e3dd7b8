// The memory of the WQEs 516R of one receive queue, and the count of those that a completion queue
// element still references. A CQE that holds only part of its completions' data (indicator 546 of
// 9.4) leaves the rest here until it is polled. So the memory may outlive its queue: a queue pair
// can be destroyed with completions unpolled.
//
// The engine's owner writes WQEs and lends them; the polling thread returns them, from any thread,
// one thread at a time for each CQ. A lent WQE is not written until it has been returned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "base/spinlock.h"
#include "verbs/memory.h"
#include "verbs/work.h"

namespace urnic::verbs {

// WQE 516R. Followed in memory by the part of the transport, then the SGEs.
struct ReceiveWqe {
  std::uint64_t wr_id = 0;
  std::uint64_t capacity = 0;   // bytes of all SGEs
  std::uint64_t immediate = 0;  // with ReceiveEnd::with_immediate
  ReceiveEnd end;
  bool ended = false;  // `end` has been written (9.4)
  std::uint8_t num_sge = 0;
};

// Most bytes that a transport may keep with each WQE; they are zeroed when it is posted.
inline constexpr std::uint32_t kReceivePart = 8;

// The completion of a Send that ended as `end` in this receive.
void fill_completion(const ReceiveWqe&, const ReceiveEnd& end, Completion* out);

// A WQE is named by its position: its posting index in a queue pair's own queue, an index in a
// shared one.
class WqeStore {
 public:
  // At least `slots` WQEs. make_shared: `limit` WQEs, free at first, which may be returned in any
  // order.
  static WqeStore* make(std::uint32_t slots, std::uint32_t max_sge);
  static WqeStore* make_shared(std::uint32_t limit, std::uint32_t max_sge);
  // The queue is destroyed: the memory is freed when nothing is lent.
  void abandon() { leave(1); }
  struct Abandon {
    void operator()(WqeStore* store) const { store->abandon(); }
  };

  std::uint32_t mask() const { return mask_; }
  ReceiveWqe& wqe(std::uint32_t position) { return *reinterpret_cast<ReceiveWqe*>(slot(position)); }
  // The transport's part: a trivial type of its own, at most kReceivePart bytes.
  template <class Part>
  Part& part(std::uint32_t position) {
    static_assert(sizeof(Part) <= kReceivePart && alignof(Part) <= alignof(ReceiveWqe));
    static_assert(std::is_trivially_copyable_v<Part> && std::is_trivially_destructible_v<Part>);
    return *reinterpret_cast<Part*>(slot(position) + sizeof(ReceiveWqe));
  }
  std::span<const Sge> sges(std::uint32_t position) {
    return {reinterpret_cast<const Sge*>(slot(position) + kSges), wqe(position).num_sge};
  }
  void write(std::uint32_t position, const RecvWr& wr);

  // ---- owner
  // Marks the WQE as referenced by a CQE.
  void lend(std::uint32_t position);
  bool any_lent() const { return users_.load(std::memory_order_acquire) != 1; }
  // Own queue: WQEs below this position are not read any more. Only with any_lent().
  std::uint32_t floor() const { return floor_.load(std::memory_order_acquire); }
  // Shared queue: takes a free WQE, oldest first. False when there is none.
  bool take_free(std::uint32_t* position);
  void give_free(std::uint32_t position);

  // ---- poller
  // Takes the completion of a lent WQE and returns the WQE to the owner. May destroy the store.
  void take(std::uint32_t position, Completion* out);

 private:
  static constexpr std::uint32_t kSges = sizeof(ReceiveWqe) + kReceivePart;

  WqeStore(std::uint32_t slots, std::uint32_t max_sge, bool shared);
  ~WqeStore() = default;
  void leave(std::uint32_t users);
  std::byte* slot(std::uint32_t position) {
    return slots_.get() + static_cast<std::size_t>(position & mask_) * stride_;
  }

  std::uint32_t mask_, stride_;
  std::unique_ptr<std::byte[]> slots_;
  std::atomic<std::uint32_t> users_{1};  // the queue, and each lent WQE, count as one
  std::atomic<std::uint32_t> floor_{0};
  // Shared queue: free WQEs, first in first out, so that receives posted together stay neighbours.
  Spinlock lock_;
  std::unique_ptr<std::uint32_t[]> free_;
  std::uint32_t free_head_ = 0, free_tail_ = 0;  // free running
};

// A run of Sends whose completions are stored in their WQEs, `count` (reference counter 544) from
// position `first` on: one CQE of the partial kind.
struct StoredSends {
  WqeStore* store = nullptr;
  std::uint32_t first = 0, count = 0;
  bool solicited = false;  // at least one of them is
};

}  // namespace urnic::verbs
