// The requester's view of the WQEs in its send queue: their number of packets, the memory they read
// or fill, and their completion in posting order.
//
// Memory is looked up again for every packet, so that a deregistered region is noticed and never
// touched. A region that was only invalidated still provides the data of repeated packets.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/bytes.h"
#include "ib/psn.h"
#include "verbs/memory.h"
#include "verbs/send_queue.h"

namespace urnic::ib {

// The requester's data in each WQE, valid once the WQE has begun.
struct SendPart {
  Psn psn;  // of its first packet; for a local operation, that of the next request
  Msn ssn;  // SSN; a local operation has that of the request before it
};

class SendWqes {
 public:
  // Both must outlive it. `pmtu`: payload bytes of a full packet, a power of two.
  SendWqes(verbs::SendQueue* queue, verbs::MemoryTable* memory, verbs::Requester who,
           std::uint32_t pmtu)
      : sq_(queue), memory_(memory), who_(who), pmtu_(pmtu), shift_(std::countr_zero(pmtu)) {}

  verbs::SendQueue& queue() const { return *sq_; }
  verbs::MemoryTable& memory() const { return *memory_; }
  const verbs::Requester& who() const { return who_; }
  verbs::SendWqe& wqe(std::uint32_t index) const { return sq_->wqe(index); }
  SendPart& part(std::uint32_t index) const { return sq_->part<SendPart>(index); }
  std::uint32_t pmtu() const { return pmtu_; }

  // The PSNs it uses: request packets, or the responses a READ expects. IB-8.
  std::uint32_t packets(const verbs::SendWqe& w) const {
    if (verbs::is_local(w.op)) return 0;
    if (verbs::is_atomic(w.op) || w.length == 0) return 1;
    return ((w.length - 1) >> shift_) + 1;
  }
  // Payload bytes of its packet `k`.
  std::uint32_t bytes(const verbs::SendWqe& w, std::uint32_t k) const {
    return std::min(pmtu_, w.length - k * pmtu_);
  }

  // True if all of its memory may be read, or filled if it awaits a response.
  bool may_touch(std::uint32_t index) const;
  // Returns `len` bytes of the payload from `offset` on as at most kMaxSges pieces. False if their
  // memory is gone. The views are valid until memory is deregistered.
  bool gather(std::uint32_t index, std::uint32_t offset, std::uint32_t len, ByteView* pieces,
              std::uint32_t* count) const;
  // The contiguous bytes from that offset on, which must be inside the payload; empty if their
  // memory is gone.
  ByteView piece(std::uint32_t index, std::uint32_t offset) const;
  // Copies a part of a response to its destination. False if access is not allowed, and then
  // nothing is written, or if the memory is gone.
  bool scatter(std::uint32_t index, std::uint32_t offset, ByteView payload) const;

  // Executes a local operation: binds a window or invalidates a key.
  verbs::Status execute_local(std::uint32_t index) const;

  // Pops the oldest WQEs that are done. False if none is to be reported.
  bool next_completion(verbs::Completion* c) const;
  // Pops the oldest WQE, done or not, and completes it with `status`. False if none is posted.
  bool next_flushed(verbs::Status status, verbs::Completion* c) const;

 private:
  const std::uint8_t* memory_of(const verbs::Sge& sge) const;

  verbs::SendQueue* sq_;
  verbs::MemoryTable* memory_;
  verbs::Requester who_;
  std::uint32_t pmtu_;
  int shift_;  // log2 of pmtu_
};

}  // namespace urnic::ib
