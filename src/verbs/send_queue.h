// Send queue SQ 210: work requests in posting order, from posting until their completion has been
// reported; their places (places.h) stay occupied until it has been polled. A WQE is named by its
// index in posting order, which counts from 0 and wraps around; the ring size is a power of two and
// the queue's limit is checked separately.
//
//   head                       started                    tail
//     | being sent or answered    | posted, not yet started |
//
// Owns no memory before the first post. Two parties: one thread at a time posts (the caller holds
// the lock, E-28), and the engine does everything else under its ownership; neither waits for the
// other. A WQE belongs to the engine from the store of tail_ to that of head_.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "base/bytes.h"
#include "verbs/memory.h"
#include "verbs/places.h"
#include "verbs/work.h"

namespace urnic::verbs {

enum class Post : std::uint8_t { Ok, Full, TooManySges, TooLong, InlineTooLong, BadOp };

// Followed in memory by the part of the transport, then SGEs or inline payload.
struct SendWqe {
  std::uint64_t wr_id = 0;
  std::uint64_t remote_address = 0;
  // SendInv, LocalInv: key to invalidate. Bind: the window's key. Else: the peer's key
  std::uint32_t key = 0;
  std::uint32_t length = 0;  // bytes of the message
  WrOp op = WrOp::Send;
  std::uint8_t flags = 0;  // WrFlag
  std::uint8_t num_sge = 0;
  bool done = false;             // completes as soon as all earlier requests have
  std::uint32_t remote_srq = 0;  // XRC
};
static_assert(sizeof(SendWqe) == 32, "with 16 bytes of the transport and one SGE a cache line");

// Operands that only few operations have.
struct SendOperands {
  std::uint64_t immediate = 0;
  AtomicOperands atomic;
};

class SendQueue {
 public:
  // `part`: bytes that a transport keeps with each WQE, zeroed when it is posted.
  SendQueue(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t max_inline,
            std::uint32_t part);
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  // May run concurrently with everything else.
  Post post(const SendWr& wr);

  std::uint32_t head() const { return head_.load(std::memory_order_relaxed); }
  std::uint32_t started() const { return started_; }
  std::uint32_t tail() const { return tail_.load(std::memory_order_acquire); }
  bool empty() const { return head() == tail(); }
  bool all_started() const { return started_ == tail(); }

  SendWqe& wqe(std::uint32_t index) { return *reinterpret_cast<SendWqe*>(slot(index)); }
  const SendWqe& wqe(std::uint32_t index) const {
    return *reinterpret_cast<const SendWqe*>(slot(index));
  }
  // The transport's part: a trivial type of its own, of the given size.
  template <class Part>
  Part& part(std::uint32_t index) const {
    static_assert(std::is_trivially_copyable_v<Part> && std::is_trivially_destructible_v<Part>);
    return *reinterpret_cast<Part*>(slot(index) + sizeof(SendWqe));
  }
  // For SendImm, WriteImm and atomics.
  const SendOperands& operands(std::uint32_t index) const { return operands_[index & mask_]; }
  // Not for kInline WQEs, whose payload is in the same place.
  std::span<Sge> sges(std::uint32_t index) const {
    return {reinterpret_cast<Sge*>(slot(index) + payload_), wqe(index).num_sge};
  }
  WindowBind window_bind(std::uint32_t index) const;  // for Bind
  ByteView inline_payload(std::uint32_t index) const {
    return {reinterpret_cast<const std::uint8_t*>(slot(index) + payload_), wqe(index).length};
  }

  void start() { ++started_; }  // the request at started() starts
  // Removes the request at head(), which is done. `reported`: it will have a completion.
  void pop(bool reported = true) {
    const std::uint32_t next = head() + 1;
    if (reported && holds_) places_.report(next);
    head_.store(next, std::memory_order_release);
  }
  void clear() {
    started_ = tail();
    places_.clear(started_);
    head_.store(started_, std::memory_order_release);
  }
  // From now on reported requests occupy their places; call it before the first post.
  void hold_places() { holds_ = true; }
  Places& places() { return places_; }

 private:
  std::byte* slot(std::uint32_t index) const {
    return slots_.get() + static_cast<std::size_t>(index & mask_) * stride_;
  }

  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> slots_;
  std::unique_ptr<SendOperands[]> operands_;  // allocated with the first request that has operands
  // bound: send queue; limit: its requested size, up to 65536; beyond: posting fails with
  // queue_full; test: SendQueue.HoldsItsLimitAndNoMore
  std::uint32_t max_wr_, max_inline_;
  std::uint32_t mask_, stride_;
  std::atomic<std::uint32_t> head_{0}, tail_{0};
  std::uint32_t started_ = 0;
  std::uint16_t payload_;  // offset of SGEs or inline payload in a WQE
  std::uint8_t max_sge_;
  bool holds_ = false;
  Places places_;
};

}  // namespace urnic::verbs
