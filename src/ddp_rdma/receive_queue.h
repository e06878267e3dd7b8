// Receive queue RQ 212: the receives a consumer posted, each found by the MSN of the Send that will
// use it (9.1, R-88). The ring is a power of two and the queue's limit is checked apart, so that
// the index survives the wrap of the MSN (E-14).
//
// Two parties: one thread at a time posts (the lock is the caller's, E-28), and the engine does
// everything else under its ownership; neither waits for the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ddp_rdma/memory.h"
#include "ddp_rdma/work.h"

namespace urnic::ddp {

// WQE 516R. Also holds what the completion will say once the Send's last segment has been placed
// (method 1 of 9.4): nothing of it is reported before delivery.
struct ReceiveWqe {
  std::uint64_t wr_id = 0;
  std::uint64_t capacity = 0;  // octets of all SGEs
  std::uint32_t byte_len = 0;  // of the message, once `ended`
  std::uint32_t last_mo = 0;   // of its last segment
  std::uint32_t inv_stag = 0;
  Opcode op = Opcode::Send;
  bool ended = false;  // the last segment has been placed
  std::uint8_t num_sge = 0;
};

class ReceiveQueue {
 public:
  enum class Post : std::uint8_t { Ok, Full, TooManySges };

  // `first_msn` is 1 on the wire; anything else is for tests.
  ReceiveQueue(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t first_msn = 1);
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  // `wr.sges` is copied. Local keys are checked when a Send arrives. Owns no memory before the
  // first post. Safe beside everything but reset().
  Post post(const RecvWr& wr);

  std::uint32_t max_sge() const { return max_sge_; }
  std::uint32_t posted() const { return tail_.load() - head(); }  // WQEs not yet delivered into
  // MSN of the oldest WQE: the next Send to be delivered.
  std::uint32_t head() const { return head_.load(std::memory_order_relaxed); }
  bool has(std::uint32_t msn) const { return msn - head() < posted(); }

  // The WQE of `msn`; has(msn) must hold.
  ReceiveWqe& wqe(std::uint32_t msn) { return *reinterpret_cast<ReceiveWqe*>(slot(msn)); }
  const ReceiveWqe& wqe(std::uint32_t msn) const {
    return *reinterpret_cast<const ReceiveWqe*>(slot(msn));
  }
  std::span<const Sge> sges(std::uint32_t msn) const {
    return {reinterpret_cast<const Sge*>(slot(msn) + sizeof(ReceiveWqe)), wqe(msn).num_sge};
  }
  // The oldest WQE is done; posted() > 0.
  void pop() { head_.store(head() + 1, std::memory_order_release); }
  // Forget everything posted and begin again at `first_msn`.
  void reset(std::uint32_t first_msn = 1) {
    head_ = first_msn;
    tail_ = first_msn;
  }

 private:
  std::byte* slot(std::uint32_t msn) const {
    return slots_.get() + static_cast<std::size_t>(msn & mask_) * stride_;
  }

  std::unique_ptr<std::byte[]> slots_;
  std::uint32_t max_wr_, max_sge_;
  std::uint32_t mask_, stride_;
  // MSNs. tail_ is stored and loaded sequentially consistent: who posts looks afterwards whether
  // the engine missed the receive, and the engine says so before it looks again
  // (QueuePair::starved).
  std::atomic<std::uint32_t> head_, tail_;
};

}  // namespace urnic::ddp
