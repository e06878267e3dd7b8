#include "tcp/holes.h"

#include <algorithm>

namespace urnic::tcp {
namespace {

// Index of the first hole whose block lies at least partly beyond `at`.
std::size_t first_ending_after(const std::vector<Hole>& holes, StreamOffset at) {
  const auto it = std::partition_point(holes.begin(), holes.end(),
                                       [at](const Hole& h) { return h.block_end <= at; });
  return static_cast<std::size_t>(it - holes.begin());
}

// Capacity that a list without holes may keep, so that a burst of losses does not leave an idle
// connection with much memory.
constexpr std::size_t kKeptHoles = 16;

HoleEvent event(HoleChange change, std::size_t index) {
  return {change, static_cast<std::uint32_t>(index)};
}

}  // namespace

bool HoleList::any_new(StreamOffset begin, StreamOffset end) const {
  begin = std::max(begin, rcv_nxt_);
  if (begin >= end) return false;
  // A range received without a gap lies inside one block, since blocks do not touch.
  const std::size_t k = first_ending_after(holes_, begin);
  return k == holes_.size() || begin < holes_[k].block || holes_[k].block_end < end;
}

bool HoleList::next_missing(StreamOffset begin, StreamOffset end, StreamOffset* from,
                            StreamOffset* to) const {
  begin = std::max(begin, rcv_nxt_);
  for (const Hole& h : holes_) {
    if (begin >= end) break;
    if (begin < h.block) {
      *from = begin;
      *to = std::min(end, h.block);
      return true;
    }
    begin = std::max(begin, h.block_end);
  }
  *from = begin;
  *to = end;
  return begin < end;
}

bool HoleList::all_new(StreamOffset begin, StreamOffset end) const {
  if (begin >= end) return true;
  if (begin < rcv_nxt_) return false;
  const std::size_t k = first_ending_after(holes_, begin);
  return k == holes_.size() || end <= holes_[k].block;
}

bool HoleList::needs_hole(StreamOffset begin, StreamOffset end) const {
  if (begin == highest()) return false;
  const std::size_t k = first_ending_after(holes_, begin);
  if (k == holes_.size()) return true;                      // a new last hole
  return begin > holes_[k].begin && end < holes_[k].block;  // a split
}

bool HoleList::is_received_edge(StreamOffset at) const {
  if (at == rcv_nxt_) return true;
  const auto it = std::partition_point(holes_.begin(), holes_.end(),
                                       [at](const Hole& h) { return h.block_end < at; });
  return it != holes_.end() && it->block_end == at;
}

std::size_t HoleList::block_at(StreamOffset at) const {
  const std::size_t k = first_ending_after(holes_, at);
  return k < holes_.size() && holes_[k].block <= at ? k : holes_.size();
}

HoleEvent HoleList::insert(StreamOffset begin, StreamOffset end) {
  if (begin >= end) return {};
  if (holes_.empty() && begin == rcv_nxt_) [[likely]] {
    rcv_nxt_ = end;
    return event(HoleChange::InOrder, 0);
  }
  if (!all_new(begin, end) || exceeds_limit(begin, end)) return {};
  const std::size_t k = first_ending_after(holes_, begin);
  if (k == holes_.size()) {
    if (begin == highest()) {
      holes_.back().block_end = end;
      return event(HoleChange::ExtendedRight, k - 1);
    }
    holes_.push_back({highest(), begin, end});
    return event(HoleChange::NewLast, k);
  }
  Hole& h = holes_[k];
  const bool left = begin == h.begin;
  const bool right = end == h.block;
  const auto here = holes_.begin() + static_cast<std::ptrdiff_t>(k);
  if (left && right) {
    if (k == 0) {
      rcv_nxt_ = h.block_end;
      holes_.erase(here);
      if (holes_.empty() && holes_.capacity() > kKeptHoles) trim();
      return event(HoleChange::ClosedLowest, 0);
    }
    holes_[k - 1].block_end = h.block_end;
    holes_.erase(here);
    return event(HoleChange::ClosedInner, k);
  }
  if (left) {
    h.begin = end;
    if (k == 0) {
      rcv_nxt_ = end;
      return event(HoleChange::InOrder, 0);
    }
    holes_[k - 1].block_end = end;
    return event(HoleChange::ExtendedRight, k - 1);
  }
  if (right) {
    h.block = begin;
    return event(HoleChange::FilledRight, k);
  }
  const Hole lower{h.begin, begin, end};
  h.begin = end;
  holes_.insert(here, lower);
  return event(HoleChange::Split, k);
}

void HoleList::forget() {
  holes_.clear();
  trim();
}

void HoleList::trim() {
  if (holes_.empty()) std::vector<Hole>().swap(holes_);
}

void HoleList::reset(StreamOffset rcv_nxt) {
  forget();
  rcv_nxt_ = rcv_nxt;
}

}  // namespace urnic::tcp
