#include "base/interval_set.h"

#include <algorithm>
#include <cassert>

namespace urnic {

std::size_t IntervalSet::find(std::uint64_t offset) const {
  // Streams grow at their end: look there first.
  if (size_ == 0 || back().end <= offset) return size_;
  const Interval* it =
      std::partition_point(begin(), end(), [offset](const Interval& r) { return r.end <= offset; });
  return static_cast<std::size_t>(it - begin());
}

IntervalSet::Inserted IntervalSet::insert(std::uint64_t first, std::uint64_t last) {
  assert(first <= last);
  if (first >= last) return {};
  // Ranges [low, high) overlap or touch [first, last).
  std::size_t low = find(first);
  if (low > 0 && (*this)[low - 1].end == first) --low;
  std::size_t high = low;
  std::uint64_t held = 0;  // octets of those ranges
  while (high < size_ && (*this)[high].begin <= last) held += (*this)[high++].size();

  if (low == high) {
    if (limit_ != 0 && size_ >= limit_) return {Change::Refused, 0, 0};
    insert_at(low, {first, last});
    octets_ += last - first;
    return {Change::New, low, last - first};
  }
  const Interval joined = {std::min(first, (*this)[low].begin),
                           std::max(last, (*this)[high - 1].end)};
  const std::uint64_t added = joined.size() - held;
  Change change = Change::Merged;
  if (high - low == 1) {
    const bool left = joined.begin < (*this)[low].begin;
    const bool right = joined.end > (*this)[low].end;
    change = left && right ? Change::ExtendedBoth
             : left        ? Change::ExtendedLeft
             : right       ? Change::ExtendedRight
                           : Change::Duplicate;
  }
  *at(low) = joined;
  erase_at(low + 1, high - low - 1);
  octets_ += added;
  return {change, low, added};
}

std::uint64_t IntervalSet::erase_below(std::uint64_t offset) {
  const std::size_t keep = find(offset);
  std::uint64_t gone = 0;
  for (std::size_t i = 0; i < keep; ++i) gone += (*this)[i].size();
  erase_at(0, keep);
  if (size_ != 0 && front().begin < offset) {
    gone += offset - front().begin;
    at(0)->begin = offset;
  }
  octets_ -= gone;
  return gone;
}

std::uint64_t IntervalSet::erase_from(std::uint64_t offset) {
  std::size_t keep = find(offset);
  std::uint64_t gone = 0;
  if (keep < size_ && (*this)[keep].begin < offset) {
    gone += (*this)[keep].end - offset;
    at(keep)->end = offset;
    ++keep;
  }
  for (std::size_t i = keep; i < size_; ++i) gone += (*this)[i].size();
  erase_at(keep, size_ - keep);
  octets_ -= gone;
  return gone;
}

void IntervalSet::pop_front() {
  assert(size_ > 0);
  octets_ -= front().size();
  erase_at(0, 1);
}

void IntervalSet::clear() {
  first_ = size_ = 0;
  octets_ = 0;
}

void IntervalSet::shrink_to_fit() {
  std::vector<Interval>(begin(), end()).swap(slots_);
  first_ = 0;
}

bool IntervalSet::contains(std::uint64_t offset) const {
  const std::size_t i = find(offset);
  return i < size_ && (*this)[i].begin <= offset;
}

bool IntervalSet::contains(std::uint64_t first, std::uint64_t last) const {
  if (first >= last) return true;
  const std::size_t i = find(first);
  return i < size_ && (*this)[i].begin <= first && last <= (*this)[i].end;
}

bool IntervalSet::intersects(std::uint64_t first, std::uint64_t last) const {
  if (first >= last) return false;
  const std::size_t i = find(first);
  return i < size_ && (*this)[i].begin < last;
}

std::uint64_t IntervalSet::first_missing(std::uint64_t from) const {
  const std::size_t i = find(from);
  return i < size_ && (*this)[i].begin <= from ? (*this)[i].end : from;
}

std::optional<Interval> IntervalSet::first_gap(std::uint64_t from, std::uint64_t to) const {
  std::size_t i = find(from);
  if (i < size_ && (*this)[i].begin <= from) from = (*this)[i++].end;
  if (from >= to) return std::nullopt;
  return Interval{from, i < size_ ? std::min(to, (*this)[i].begin) : to};
}

// Make slots_ larger than size_, with the free room where it will be wanted: mostly behind.
void IntervalSet::make_room() {
  if (first_ != 0 && first_ >= size_) {  // the front half was dropped: reuse it
    std::move(begin(), end(), slots_.begin());
    first_ = 0;
    return;
  }
  slots_.resize(slots_.empty() ? 4 : slots_.size() * 2);
}

void IntervalSet::insert_at(std::size_t i, Interval range) {
  if (i < size_ / 2 && first_ > 0) {
    std::move(at(0), at(i), at(0) - 1);
    --first_;
  } else {
    if (first_ + size_ == slots_.size()) make_room();
    std::move_backward(at(i), at(size_), at(size_) + 1);
  }
  ++size_;
  *at(i) = range;
}

void IntervalSet::erase_at(std::size_t i, std::size_t count) {
  if (count == 0) return;
  if (i < size_ - i - count) {
    std::move_backward(at(0), at(i), at(i + count));
    first_ += count;
  } else {
    std::move(at(i + count), at(size_), at(i));
  }
  size_ -= count;
  if (size_ == 0) first_ = 0;
}

}  // namespace urnic
