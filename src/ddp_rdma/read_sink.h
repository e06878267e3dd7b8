// Read sinks (E-16): the destinations of the Read Responses of one outstanding Read, or of the
// response of an atomic. Each sink has its own STag from the device's table, which only the
// responses of that Read may use.
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
  // Marks the sink of an atomic, which no tagged message may use.
  static constexpr StreamId kOfAtomic = 1u << 31;

  std::uint8_t* base = nullptr;  // null if the sink has several pieces
  std::uint64_t length = 0;      // tagged offsets count from 0
  // The stream that may use it, for an atomic or-ed with kOfAtomic. In a free sink: the next free
  // one.
  StreamId stream = 0;
  std::uint32_t progress = 0;  // bytes received in order so far
  bool out_of_order = false;   // part of it arrived out of order, and `progress` is invalid
  bool ended = false;          // the last segment of the response has been placed
  // The pieces in order, if there are several. Kept for reuse.
  std::unique_ptr<std::vector<std::span<std::uint8_t>>> pieces;
};

class ReadSinks {
 public:
  // `keys` must outlive this object.
  explicit ReadSinks(verbs::MemoryTable* keys) : keys_(keys) {}
  ReadSinks(const ReadSinks&) = delete;
  ReadSinks& operator=(const ReadSinks&) = delete;

  // Opens a sink over `pieces` and returns its STag; 0 if the table is full.
  std::uint32_t open(StreamId stream, std::span<const std::span<std::uint8_t>> pieces);
  void release(std::uint32_t stag);
  // Its memory goes away: responses are rejected like those for an unknown STag. The sink must
  // still be released.
  void close(std::uint32_t stag) { keys_->invalidate_reserved(stag); }

  // nullptr if `stag` is not the STag of a sink.
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
