// What the requester asks of the WQEs in its send queue: how many packets they are, which memory
// they read or fill, and their completion in posting order.
//
// Memory is looked up anew for every packet, so that a region which is gone is noticed and never
// touched. One that was only invalidated still holds what a repeated packet must carry.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/bytes.h"
#include "ib/psn.h"
#include "verbs/memory.h"
#include "verbs/send_queue.h"

namespace urnic::ib {

// What the requester keeps with each WQE from its beginning on.
struct SendPart {
  Psn psn;  // of its first packet; of a local operation that of the next request
  Msn ssn;  // SSN; a local operation has that of the request before it
};

class SendWqes {
 public:
  // Both outlive it. `pmtu`: bytes of payload of a full packet, a power of two.
  SendWqes(verbs::SendQueue* queue, verbs::MemoryTable* memory, verbs::Requester who,
           std::uint32_t pmtu)
      : sq_(queue), memory_(memory), who_(who), pmtu_(pmtu), shift_(std::countr_zero(pmtu)) {}

  verbs::SendQueue& queue() const { return *sq_; }
  verbs::MemoryTable& memory() const { return *memory_; }
  const verbs::Requester& who() const { return who_; }
  verbs::SendWqe& wqe(std::uint32_t index) const { return sq_->wqe(index); }
  SendPart& part(std::uint32_t index) const { return sq_->part<SendPart>(index); }
  std::uint32_t pmtu() const { return pmtu_; }

  // PSNs it takes: request packets, or the responses a READ expects. IB-8.
  std::uint32_t packets(const verbs::SendWqe& w) const {
    if (verbs::is_local(w.op)) return 0;
    if (verbs::is_atomic(w.op) || w.length == 0) return 1;
    return ((w.length - 1) >> shift_) + 1;
  }
  // Payload bytes of packet `k` of them.
  std::uint32_t bytes(const verbs::SendWqe& w, std::uint32_t k) const {
    return std::min(pmtu_, w.length - k * pmtu_);
  }

  // May all of its memory be read, or filled if it awaits a response?
  bool may_touch(std::uint32_t index) const;
  // `len` bytes of the payload from `offset` on, piece by piece: at most kMaxSges. False when
  // their memory has gone. The views hold until memory is deregistered.
  bool gather(std::uint32_t index, std::uint32_t offset, std::uint32_t len, ByteView* pieces,
              std::uint32_t* count) const;
  // What lies in one piece from that byte on, which the payload has; empty when its memory has
  // gone.
  ByteView piece(std::uint32_t index, std::uint32_t offset) const;
  // A part of a response goes to where it belongs. False when it may not, and nothing was written,
  // or the memory has gone.
  bool scatter(std::uint32_t index, std::uint32_t offset, ByteView payload) const;

  // What a local operation does: binds a window or invalidates a key.
  verbs::Status execute_local(std::uint32_t index) const;

  // The oldest, if it is done, leaves the queue. False when there is none to report.
  bool next_completion(verbs::Completion* c) const;
  // The oldest leaves the queue, done or not: unless it is, as `status`. False when none is posted.
  bool next_flushed(verbs::Status status, verbs::Completion* c) const;

 private:
  const std::uint8_t* memory_of(const verbs::Sge& sge) const;

  verbs::SendQueue* sq_;
  verbs::MemoryTable* memory_;
  verbs::Requester who_;
  std::uint32_t pmtu_;
  int shift_;  // its logarithm
};

}  // namespace urnic::ib
