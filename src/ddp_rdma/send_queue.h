// Send queue SQ 210: work requests in posting order, from posting until their completion has been
// reported. A WQE is named by its sequence number, which counts posts and wraps; the ring is a
// power of two and the queue's limit is checked apart.
//
//   head                       started                    tail
//     | being sent or answered    | posted, not yet begun   |
//
// Owns no memory before the first post. Two parties: one thread at a time posts (the lock is the
// caller's, E-28), and the engine does everything else under its ownership; neither waits for the
// other. A WQE belongs to the engine from the store of tail_ to that of head_.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ddp_rdma/memory.h"
#include "ddp_rdma/work.h"

namespace urnic::ddp {

enum class Post : std::uint8_t { Ok, Full, TooManySges, TooLong, InlineTooLong, BadOp };

struct SendWqe {
  std::uint64_t wr_id = 0;
  std::uint64_t remote_to = 0;
  std::uint32_t stag = 0;       // Write, Read: remote STag. SendInv, LocalInv: STag to invalidate
  std::uint32_t length = 0;     // octets of the message
  std::uint32_t msn = 0;        // Send: its MSN. Read: STag of its sink
  std::uint32_t next_read = 0;  // Read: sequence number of the next outstanding Read
  std::uint32_t unfilled = 0;   // kept: records cut and not yet handed to TCP
  WrOp op = WrOp::Send;
  std::uint8_t flags = 0;  // WrFlag
  std::uint8_t num_sge = 0;
  bool kept : 1 = false;     // its FPDUs are copied: it is done when handed to TCP (E-22, E-23)
  bool counted : 1 = false;  // its regions count it in `uses` (E-25)
  bool whole : 1 = false;    // the last FPDU has been cut
  bool broken : 1 = false;   // a region it still had to read was deregistered
  bool done : 1 = false;     // completes as soon as everything before it has
};
static_assert(sizeof(SendWqe) == 40, "with one SGE inside a cache line");

class SendQueue {
 public:
  SendQueue(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t max_inline);
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  // Safe beside everything else.
  Post post(const SendWr& wr);

  std::uint32_t head() const { return head_.load(std::memory_order_relaxed); }
  std::uint32_t started() const { return started_; }
  std::uint32_t tail() const { return tail_.load(std::memory_order_acquire); }
  bool empty() const { return head() == tail(); }
  bool all_started() const { return started_ == tail(); }

  SendWqe& wqe(std::uint32_t seq) { return *reinterpret_cast<SendWqe*>(slot(seq)); }
  const SendWqe& wqe(std::uint32_t seq) const {
    return *reinterpret_cast<const SendWqe*>(slot(seq));
  }
  // Not for kInline WQEs, whose payload lies in the same place.
  std::span<Sge> sges(std::uint32_t seq) const {
    return {reinterpret_cast<Sge*>(slot(seq) + sizeof(SendWqe)), wqe(seq).num_sge};
  }
  ByteView inline_payload(std::uint32_t seq) const {
    return {reinterpret_cast<const std::uint8_t*>(slot(seq) + sizeof(SendWqe)), wqe(seq).length};
  }

  void start() { ++started_; }                                        // started() begins
  void pop() { head_.store(head() + 1, std::memory_order_release); }  // head() has been reported
  void clear() {
    started_ = tail();
    head_.store(started_, std::memory_order_release);
  }

 private:
  std::byte* slot(std::uint32_t seq) const {
    return slots_.get() + static_cast<std::size_t>(seq & mask_) * stride_;
  }

  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> slots_;
  std::uint32_t max_wr_, max_inline_;
  std::uint32_t mask_, stride_;
  std::atomic<std::uint32_t> head_{0}, tail_{0};
  std::uint32_t started_ = 0;
  std::uint8_t max_sge_;
};

}  // namespace urnic::ddp
