// The requests of the send queue from their beginning until their completion is reported: the
// memory they read or fill, the regions that must stay registered for them (E-25), and completion
// in posting order.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "ddp_rdma/header.h"
#include "ddp_rdma/read_sink.h"
#include "ddp_rdma/send_part.h"
#include "ddp_rdma/verbs_words.h"
#include "verbs/sge_walk.h"

namespace urnic::ddp {

class SendRequests {
 public:
  // Both must outlive this object.
  SendRequests(SendQueue* queue, MemoryTable* memory, PdId pd)
      : sq_(*queue), memory_(memory), pd_(pd) {}

  SendQueue& queue() const { return sq_; }
  MemoryTable& memory() const { return *memory_; }
  PdId pd() const { return pd_; }
  SendWqe& wqe(std::uint32_t seq) const { return sq_.wqe(seq); }
  SendPart& part(std::uint32_t seq) const { return sq_.part<SendPart>(seq); }
  // Opcode of the first message of a request; length() is that message's length in its buffer.
  static Opcode opcode_of(const SendWqe& w) {
    const bool solicited = (w.flags & kSolicited) != 0;
    switch (w.op) {
      case WrOp::Write:
      case WrOp::WriteImm:
        return Opcode::Write;
      case WrOp::SendImm:
        return immediate_of(w);
      case WrOp::SendInv:
        return solicited ? Opcode::SendSeInv : Opcode::SendInv;
      default:
        return solicited ? Opcode::SendSe : Opcode::Send;
    }
  }

  static std::uint32_t bytes_of(const SendWqe& w) {
    return w.length + (w.op == WrOp::SendImm ? kImmediateData : 0);
  }
  // Opcode of the Immediate Data of a request that has some.
  static Opcode immediate_of(const SendWqe& w) {
    return (w.flags & kSolicited) != 0 ? Opcode::ImmediateSe : Opcode::Immediate;
  }

  // True if all of its payload may be read.
  bool may_read(std::uint32_t seq) const {
    if ((wqe(seq).flags & kInline) != 0) return true;
    for (const Sge& sge : sq_.sges(seq)) {
      if (resolve_sge(*memory_, sge, pd_, false).data() == nullptr) return false;
    }
    return true;
  }
  // Finds the memory for a Read's response: at most kMaxSges pieces. Returns false if access is not
  // allowed.
  bool find_sink(std::uint32_t seq, std::span<std::uint8_t>* pieces, std::size_t* count) const;
  // Memory of an SGE of a request that has begun; nullptr if its region is gone. Looked up each
  // time: a region deregistered without detach() is detected, and a region that was only
  // invalidated still holds our data.
  const std::uint8_t* memory_of(const Sge& sge) const {
    const Region* region = memory_->find_registered(sge.lkey);
    if (region == nullptr) return nullptr;
    const std::uint64_t offset = sge.addr - region->address;
    if (offset > region->length || sge.length > region->length - offset) return nullptr;
    return region->base + offset;
  }
  // Gets `len` bytes of the payload from `offset` on, piece by piece (at most kMaxSges). Returns
  // false if their memory is gone.
  bool gather(std::uint32_t seq, std::uint32_t offset, std::uint32_t len, ByteView* pieces,
              std::uint32_t* count) const {
    *count = 0;
    if (len == 0) return true;
    if ((wqe(seq).flags & kInline) != 0) {
      pieces[(*count)++] = sq_.inline_payload(seq).subspan(offset, len);
      return true;
    }
    return verbs::for_each_piece(sq_.sges(seq), offset, len,
                                 [&](const Sge& sge, std::uint64_t at, std::uint64_t n) {
                                   const std::uint8_t* const memory = memory_of(sge);
                                   if (memory == nullptr) return false;
                                   pieces[(*count)++] = {memory + at, n};
                                   return true;
                                 });
  }

  // The regions of a request count it from its beginning until it is done.
  void count_uses(std::uint32_t seq);
  void finish(std::uint32_t seq) {
    if (part(seq).counted) uncount_uses(seq);
    wqe(seq).done = true;
  }
  // The request no longer uses the memory of its regions.
  void uncount(std::uint32_t seq) {
    if (part(seq).counted) uncount_uses(seq);
  }
  // Releases what one unfinished request, or each of them, holds.
  void release(std::uint32_t seq, ReadSinks* sinks);
  void release_all(ReadSinks* sinks);
  // True if the request reads or fills memory of `stag`.
  bool uses_region(std::uint32_t seq, std::uint32_t stag) const;
  // E-25: from now on no request reads or fills memory of `stag`.
  void detach(std::uint32_t stag, ReadSinks* sinks);

  // Removes the oldest request from the queue if it is done. Returns false if there is none to
  // report.
  bool next_completion(Completion* c);
  template <class Sink>
  void report(Sink&& on_completion) {
    Completion c;
    while (next_completion(&c)) on_completion(static_cast<const Completion&>(c));
  }

 private:
  void uncount_uses(std::uint32_t seq);

  SendQueue& sq_;
  MemoryTable* memory_;
  PdId pd_;
};

}  // namespace urnic::ddp
