// Message counters per TCP hole (section 9.2, Fig 12). They count the messages that end in the
// block after a hole, and are passed to delivery when the lowest hole closes. Memory is used per
// hole, never per message. Runs in step with tcp::HoleList: the HoleEvent of every commit is
// passed here.
#pragma once

#include <cstdint>
#include <vector>

#include "ddp_rdma/message_counts.h"
#include "tcp/holes.h"

namespace urnic::fastpath {

// For `urnic stat`. A split also counts as an opened hole, a merge also as a closed one. Holes
// forgotten by a downgrade count as neither.
struct HoleTally {
  std::uint64_t opened = 0, closed = 0, split = 0, merged = 0;
};

class HoleCounters {
 public:
  // Returns the messages that may be delivered now, given the HoleEvent of commit() and the
  // messages that end in the committed segment. For ClosedLowest, the segment's own messages come
  // first: they go to `*own`, and the return value is the hole's. Otherwise the messages
  // that may be delivered are in `*own` alone.
  ddp::MessageCounts on_commit(const tcp::HoleEvent&, const ddp::MessageCounts& segment,
                               ddp::MessageCounts* own);
  // Downgrade: discards all counts and their memory.
  void discard();
  // Frees memory if there is no hole.
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
