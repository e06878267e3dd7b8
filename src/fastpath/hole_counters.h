// Message counters per TCP hole (section 9.2, Fig 12): counts of messages that end in the block
// behind a hole, handed to delivery when the lowest hole closes. Memory is per hole, never per
// message. Runs in step with tcp::HoleList: every commit's HoleEvent is given here.
#pragma once

#include <cstdint>
#include <vector>

#include "ddp_rdma/message_counts.h"
#include "tcp/holes.h"

namespace urnic::fastpath {

// For `urnic stat`. A split also opens a hole, a merge also closes one; holes forgotten by a
// downgrade are neither.
struct HoleTally {
  std::uint64_t opened = 0, closed = 0, split = 0, merged = 0;
};

class HoleCounters {
 public:
  // The messages that may be delivered now, given what commit did and the messages that end in the
  // committed segment. For ClosedLowest the segment's own come first: `*own` gets them, the return
  // value is the hole's; otherwise the return value is zero or the segment's own in *own.
  ddp::MessageCounts on_commit(const tcp::HoleEvent&, const ddp::MessageCounts& segment,
                               ddp::MessageCounts* own);
  // Downgrade: all counts are discarded, with their memory.
  void discard();
  // Give memory back when there is no hole.
  void trim();

  std::size_t size() const { return holes_.size(); }
  // Bytes of memory it owns.
  std::size_t memory() const { return holes_.capacity() * sizeof(ddp::MessageCounts); }
  const ddp::MessageCounts& operator[](std::size_t i) const { return holes_[i]; }
  const HoleTally& tally() const { return tally_; }

 private:
  std::vector<ddp::MessageCounts> holes_;
  HoleTally tally_;
};

}  // namespace urnic::fastpath
