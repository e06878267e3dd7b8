// Bounded memory for packets that the responders of one engine keep past gaps (held_packets.h). A
// queue pair without a gap uses none of it; returned memory is cached, so that frequent gaps
// allocate nothing.
//
// Owned by the side of one engine; must outlive its responders. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/buffer_pool.h"

namespace urnic::ib {

class HeldPool {
 public:
  // `limit`: bytes lent at a time.
  // bound: memory for what RoCE keeps: packets after gaps, logs of sent packets, early responses;
  // setting: reassembly_pool; limit: 64 MiB; beyond: the queue pair goes SLOW, repeats everything
  // from the gap on, or requests a response again; test:
  // HeldPacketsTest.ThePoolLimitsAllQueuePairsTogether, BehindGap.AnExhaustedPoolMakesItSlow
  explicit HeldPool(std::size_t limit = std::size_t{64} << 20) : limit_(limit) {}

  // Returns 1 << shift bytes, aligned to 64, with undefined contents; shift as in BufferPool. Null:
  // the limit is reached, or out of memory.
  std::uint8_t* take(unsigned shift) {
    if (pool_.in_use() + (std::size_t{1} << shift) > limit_) return nullptr;
    try {
      return pool_.take(shift);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  void give(std::uint8_t* block, unsigned shift) { pool_.give(block, shift); }

  std::size_t in_use() const { return pool_.in_use(); }

 private:
  BufferPool pool_;
  std::size_t limit_;
};

}  // namespace urnic::ib
