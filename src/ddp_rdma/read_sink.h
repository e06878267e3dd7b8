// Read sinks (E-16): where the Read Responses of one outstanding Read, or the response of an
// atomic, go. Each has an STag of its own out of the device's table, which nothing but that Read's
// responses may use.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ddp_rdma/violation.h"
#include "verbs/memory.h"

namespace urnic::ddp {

using StreamId = std::uint32_t;  // one RDMA stream (QP) of the device

struct ReadSink {
  // No tagged message is for the sink of an atomic.
  static constexpr StreamId kOfAtomic = 1u << 31;

  std::uint8_t* base = nullptr;  // null when it consists of several pieces
  std::uint64_t length = 0;      // tagged offsets count from 0
  // The one that may use it; for an atomic kOfAtomic besides. Free: the next free sink.
  StreamId stream = 0;
  std::uint32_t progress = 0;  // bytes received in order so far
  bool out_of_order = false;   // part of it came out of order, `progress` means nothing
  bool ended = false;          // the last segment of the response has been placed
  // When there are several: in order. Kept for reuse.
  std::unique_ptr<std::vector<std::span<std::uint8_t>>> pieces;
};

class ReadSinks {
 public:
  // `keys` outlives this.
  explicit ReadSinks(verbs::MemoryTable* keys) : keys_(keys) {}
  ReadSinks(const ReadSinks&) = delete;
  ReadSinks& operator=(const ReadSinks&) = delete;

  // STag of a new one over `pieces`. 0 when the table is full.
  std::uint32_t open(StreamId stream, std::span<const std::span<std::uint8_t>> pieces);
  void release(std::uint32_t stag);
  // Its memory goes: responses are refused as ones for an unknown STag. It is still to be released.
  void close(std::uint32_t stag) { keys_->invalidate_reserved(stag); }

  // nullptr when `stag` names no sink (any more).
  const ReadSink* find(std::uint32_t stag) const {
    const verbs::Region* r = keys_->find(stag);
    return r != nullptr && r->kind == verbs::Region::Kind::Reserved ? &sinks_[r->link] : nullptr;
  }
  ReadSink* find(std::uint32_t stag) {
    return const_cast<ReadSink*>(static_cast<const ReadSinks*>(this)->find(stag));
  }

 private:
  verbs::MemoryTable* keys_;
  std::vector<ReadSink> sinks_;
  std::uint32_t free_ = kNone;  // list through ReadSink::stream
  static constexpr std::uint32_t kNone = ~0u;
};

}  // namespace urnic::ddp
