// Which bytes beyond RCV.NXT have been received: a sorted list of holes, each followed by a
// received block (specification 9.2, Fig 12). Knows no bytes; stores none.
//
//   RCV.NXT                                                        highest received
//      |  hole 0  | block 0 |   hole 1   | block 1 | ... | hole n-1 | block n-1 |
//
// Invariants: hole 0 begins at RCV.NXT; every hole and every block has at least one byte; blocks
// are disjoint and in order. insert() leaves the state unchanged when it refuses.
#pragma once

#include <cstdint>
#include <vector>

#include "base/stream_offset.h"

namespace urnic::tcp {

enum class HoleChange : std::uint8_t {
  None,           // nothing (no range)
  InOrder,        // RCV.NXT advanced; no hole closed (hole 0, if any, shrank from the left)
  ClosedLowest,   // the range filled hole 0: RCV.NXT jumped behind block 0; hole `index` == 0 is
                  // gone, the old hole 1 is now hole 0
  NewLast,        // new hole `index` with its block, beyond all received data
  ExtendedRight,  // block `index` grew on its right (the hole after it, if any, shrank)
  FilledRight,    // the right end of hole `index` was filled: block `index` grew on its left
  Split,          // hole `index` split: a new hole `index` with a new block, the old one is now
                  // `index + 1` and keeps its identity
  ClosedInner,    // hole `index` > 0 filled: blocks index-1 and index merged, hole `index` is gone
};

struct HoleEvent {
  HoleChange change = HoleChange::None;
  std::uint32_t index = 0;
};

struct Hole {
  StreamOffset begin;      // first missing byte
  StreamOffset block;      // first byte of the block behind it
  StreamOffset block_end;  // one past that block
};

class HoleList {
 public:
  // At most `limit` holes; 0 = unlimited.
  void set_limit(std::uint32_t limit) { limit_ = limit; }
  std::uint32_t limit() const { return limit_; }

  StreamOffset rcv_nxt() const { return rcv_nxt_; }
  std::size_t size() const { return holes_.size(); }
  const Hole& operator[](std::size_t i) const { return holes_[i]; }
  // One past the highest byte received (RCV.NXT when there is no hole).
  StreamOffset highest() const { return holes_.empty() ? rcv_nxt_ : holes_.back().block_end; }

  // Is any byte of [begin, end) missing / is every one missing?
  bool any_new(StreamOffset begin, StreamOffset end) const;
  bool all_new(StreamOffset begin, StreamOffset end) const;
  // The first run of missing bytes in [begin, end). False when there is none.
  bool next_missing(StreamOffset begin, StreamOffset end, StreamOffset* from,
                    StreamOffset* to) const;
  // Would insert([begin, end)) need one hole more than the limit? (Range entirely new.)
  bool exceeds_limit(StreamOffset begin, StreamOffset end) const {
    return limit_ != 0 && holes_.size() >= limit_ && needs_hole(begin, end);
  }
  // Right edge of a block equal to `at`, or RCV.NXT itself: a known frame end while FAST
  // (Case A predicate of section 2, Q-8).
  bool is_received_edge(StreamOffset at) const;

  // Index of the hole whose block holds the byte `at`; size() when no block does.
  std::size_t block_at(StreamOffset at) const;

  // insert() of a range in order while there is no hole; false, and nothing done, otherwise.
  bool advance(StreamOffset begin, StreamOffset end) {
    if (!holes_.empty() || begin != rcv_nxt_ || begin >= end) return false;
    rcv_nxt_ = end;
    return true;
  }
  // Record [begin, end): not empty, entirely new (all_new) and within the limit.
  HoleEvent insert(StreamOffset begin, StreamOffset end);
  // Forget all blocks (downgrade). RCV.NXT stays.
  void forget();
  void reset(StreamOffset rcv_nxt);
  // Give memory back when there is no hole.
  void trim();

 private:
  bool needs_hole(StreamOffset begin, StreamOffset end) const;

  std::vector<Hole> holes_;
  StreamOffset rcv_nxt_;
  // bound: TCP holes of a connection; setting: hole_limit; beyond: a segment that would open one
  // more is dropped without an ACK and retransmitted; test:
  // HoleList.LimitRefusesNewHolesOnly, RxDetour.TheLimitOfHolesHoldsOnADetour,
  // Scenarios.TheHoleLimitIsNotExceeded
  std::uint32_t limit_ = 256;
};

}  // namespace urnic::tcp
