// Which bytes beyond RCV.NXT have been received: a sorted list of holes, each followed by a
// received block (specification 9.2, Fig 12). Stores ranges only, no data.
//
//   RCV.NXT                                                        highest received
//      |  hole 0  | block 0 |   hole 1   | block 1 | ... | hole n-1 | block n-1 |
//
// Invariants: hole 0 begins at RCV.NXT; every hole and every block has at least one byte; blocks
// are disjoint and in order. A failed insert() leaves the state unchanged.
#pragma once

#include <cstdint>
#include <vector>

#include "base/stream_offset.h"

namespace urnic::tcp {

enum class HoleChange : std::uint8_t {
  None,           // no change (empty range)
  InOrder,        // RCV.NXT advanced; no hole closed (hole 0, if any, shrank from the left)
  ClosedLowest,   // the range filled hole 0: RCV.NXT jumped past block 0; hole `index` == 0 is
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
  StreamOffset block;      // first byte of the block after it
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
  // One past the highest byte received (RCV.NXT if there is no hole).
  StreamOffset highest() const { return holes_.empty() ? rcv_nxt_ : holes_.back().block_end; }

  // True if any byte of [begin, end) is missing; true if all bytes are missing.
  bool any_new(StreamOffset begin, StreamOffset end) const;
  bool all_new(StreamOffset begin, StreamOffset end) const;
  // The first run of missing bytes in [begin, end). False if there is none.
  bool next_missing(StreamOffset begin, StreamOffset end, StreamOffset* from,
                    StreamOffset* to) const;
  // True if insert([begin, end)) would exceed the limit of holes. The range must be entirely new.
  bool exceeds_limit(StreamOffset begin, StreamOffset end) const {
    return limit_ != 0 && holes_.size() >= limit_ && needs_hole(begin, end);
  }
  // Right edge of a block equal to `at`, or RCV.NXT itself: a known frame end while FAST
  // (Case A predicate of section 2, Q-8).
  bool is_received_edge(StreamOffset at) const;

  // Index of the hole whose block holds the byte `at`; size() if no block does.
  std::size_t block_at(StreamOffset at) const;

  // Does the same as insert() for a range in order, if there is no hole. Otherwise returns false
  // and changes nothing.
  bool advance(StreamOffset begin, StreamOffset end) {
    if (!holes_.empty() || begin != rcv_nxt_ || begin >= end) return false;
    rcv_nxt_ = end;
    return true;
  }
  // Records [begin, end), which must be not empty, entirely new (all_new) and within the limit.
  HoleEvent insert(StreamOffset begin, StreamOffset end);
  // Forgets all blocks (downgrade). RCV.NXT stays.
  void forget();
  void reset(StreamOffset rcv_nxt);
  // Frees spare memory if there is no hole.
  void trim();

 private:
  bool needs_hole(StreamOffset begin, StreamOffset end) const;

  std::vector<Hole> holes_;
  StreamOffset rcv_nxt_;
  // bound: TCP holes of a connection; setting: hole_limit; beyond: a segment that would open one
  // more is dropped without an ACK and retransmitted; test:
  // HoleList.LimitRefusesNewHolesOnly, RxDetour.TheHoleLimitAppliesOnADetour,
  // Scenarios.TheHoleLimitIsNotExceeded
  std::uint32_t limit_ = 256;
};

}  // namespace urnic::tcp
