#include "fastpath/hole_counters.h"

#include <cassert>

namespace urnic::fastpath {
namespace {

// Capacity kept without holes, so that a burst of losses does not leave an idle connection with
// much memory.
constexpr std::size_t kKeptHoles = 16;

}  // namespace

ddp::MessageCounts HoleCounters::on_commit(const tcp::HoleEvent& event,
                                           const ddp::MessageCounts& segment,
                                           ddp::MessageCounts* own) {
  using tcp::HoleChange;
  *own = {};
  const std::uint32_t i = event.index;
  switch (event.change) {
    case HoleChange::None:
      assert(!segment.any());
      break;

    case HoleChange::InOrder:
      *own = segment;
      break;

    case HoleChange::ClosedLowest: {
      assert(!holes_.empty());
      *own = segment;
      const ddp::MessageCounts behind = holes_.front();
      holes_.erase(holes_.begin());
      if (holes_.empty() && holes_.capacity() > kKeptHoles) trim();
      ++tally_.closed;
      return behind;
    }

    case HoleChange::NewLast:
      assert(i == holes_.size());
      holes_.push_back(segment);
      ++tally_.opened;
      break;

    // The segment is now part of the block after hole i, at its left or right end.
    case HoleChange::ExtendedRight:
    case HoleChange::FilledRight:
      assert(i < holes_.size());
      holes_[i] += segment;
      break;

    // The lower hole is the new one. The counts so far belong to the block after the upper one
    //
    case HoleChange::Split:
      assert(i < holes_.size());
      holes_.insert(holes_.begin() + i, segment);
      ++tally_.opened;
      ++tally_.split;
      break;

    // Blocks i-1 and i are one block now, but not in order yet: nothing is delivered.
    case HoleChange::ClosedInner:
      assert(i > 0 && i < holes_.size());
      holes_[i - 1] += segment;
      holes_[i - 1] += holes_[i];
      holes_.erase(holes_.begin() + i);
      ++tally_.closed;
      ++tally_.merged;
      break;
  }
  return {};
}

void HoleCounters::discard() {
  holes_.clear();
  trim();
}

void HoleCounters::trim() {
  if (holes_.empty()) std::vector<ddp::MessageCounts>().swap(holes_);
}

}  // namespace urnic::fastpath
