// Reassembly buffer 34 of one SLOW connection (and of start-up): payload bytes by stream offset, in
// order or out of order, in chunks from a pool that all connections of an engine share (E-11).
//
// Guarantee: every connection may always store in-order bytes up to one maximal FPDU plus one MSS
// (kGuarantee) beyond its read position. Beyond that, it depends on the pool. Out-of-order bytes
// are refused first: above kGuarantee, a buffer may hold them only up to a share of what the pool
// has left. An empty buffer owns no chunk. The buffer does not know holes: the caller
// (tcp::HoleList) knows which bytes are present. R-51: bytes never stored are never returned;
// view() is bounded by what the caller says is in order.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/stream_offset.h"
#include "mpa/framing.h"

namespace urnic::reassembly {

// One maximal FPDU (with markers) plus the largest TCP segment. With less, an FPDU could wait for
// its own tail for ever.
inline constexpr std::uint32_t kGuarantee = mpa::marked_size(0, mpa::kMaxUlpdu) + 65535;

// Shared by all connections of an engine, and owned by it. Must outlive its buffers. One thread at
// a time.
class Pool {
 public:
  static constexpr std::uint32_t kChunk = 16384;
  // `total_limit`: bytes that all buffers together may hold beyond each one's guarantee. Chunks
  // taken under the guarantee count as well, so out-of-order data is refused first when memory is
  // short.
  // bound: memory for reassembly of an engine; setting: reassembly_pool; limit: 64 MiB; beyond:
  // out-of-order data is refused and retransmitted; every connection may keep one FPDU and one
  // segment in order (E-11); a connection that holds much leaves four times as much to others;
  // test: ReassemblyBuffer.WhenThePoolIsExhaustedOutOfOrderIsRefusedAndInOrderIsNot,
  // ReassemblyBuffer.AThousandDowngradesOnAPoolOfTenWindows,
  // ReassemblyBuffer.AFewThatHoldAllTheyCanLeaveTheOthersHalfOfTheirShare,
  // Sharing.AFewThatHoldAllTheyCanLeaveTheOthersHalfOfTheirShare,
  // RxDetour.AFullPoolRefusesOnlyOutOfOrderData
  explicit Pool(std::uint64_t total_limit);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::uint8_t* take(bool guaranteed);  // nullptr if exhausted and not guaranteed
  void give(std::uint8_t* chunk);
  std::uint64_t in_use() const;     // bytes
  std::uint64_t available() const;  // bytes that may be taken without the guarantee

 private:
  // Free chunks kept for reuse: the in-order SLOW path takes and returns one per segment.
  static constexpr std::size_t kKeep = 64;
  std::uint64_t limit_, used_ = 0;
  std::vector<std::uint8_t*> free_;
};

class Buffer {
 public:
  // At most `capacity` bytes beyond the read position are stored (at least kGuarantee).
  // bound: reassembly buffer of a connection; limit: the receive window, at least one FPDU and one
  // segment; beyond: refused and retransmitted; test:
  // ReassemblyBuffer.RefusesBytesBelowTheReadPositionOrBeyondTheCapacity,
  // ReassemblyBuffer.ASmallCapacityStillHoldsAMaximalFpduAndOneMss
  Buffer(Pool* pool, std::uint32_t capacity);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Empties the buffer and sets the read position.
  void reset(StreamOffset at);
  // True if [begin, begin+len) can be stored now. `in_order`: begin is the end of the in-order
  // bytes.
  bool can_store(StreamOffset begin, std::uint32_t len, bool in_order) const;
  // Stores bytes at `begin` >= read position. Returns false (state unchanged) if can_store() is
  // false.
  bool store(StreamOffset begin, ByteView bytes, bool in_order);

  // Stores a whole FPDU that comes next in an empty buffer. Returns where it lies until passed(),
  // in one chunk; nullptr, with nothing changed, if it needs more than one chunk.
  std::uint8_t* pass(ByteView fpdu);
  // The FPDU is processed, and the stream is read up to `end`.
  void passed(std::uint8_t* fpdu, StreamOffset end);

  StreamOffset read_position() const { return read_; }
  // Contiguous view of at most `max` bytes at the read position + skip, below `in_order_end`. It
  // may end early at a chunk edge.
  ByteView view(std::uint64_t skip, std::uint32_t max, StreamOffset in_order_end) const;
  // Copies [read+skip, +len) to dst. The caller must know that all bytes are present.
  void copy(std::uint64_t skip, std::uint32_t len, std::uint8_t* dst) const;
  // Bytes below `to` were processed; returns their chunks to the pool.
  void consume(StreamOffset to);
  // Bytes that may still be stored, for the receive window.
  std::uint64_t room(StreamOffset in_order_end) const;
  // True if no byte is stored beyond the read position, in order or not.
  bool empty() const { return high_ <= read_; }

 private:
  std::size_t chunk_of(StreamOffset at) const { return (at - base_) / Pool::kChunk; }
  bool absent(std::size_t chunk) const {
    return chunk >= chunks_.size() || chunks_[chunk] == nullptr;
  }
  std::uint8_t* take_chunk();
  void give_chunk(std::uint8_t* chunk);
  void release_all();

  Pool* pool_;
  std::uint64_t held_ = 0;  // bytes of chunks
  std::uint32_t capacity_;
  StreamOffset base_, read_, high_;  // base_: offset of chunk 0's first byte
  // Chunk i holds [base_ + i * kChunk, + kChunk); null where nothing has been stored yet.
  std::vector<std::uint8_t*> chunks_;
};

}  // namespace urnic::reassembly
