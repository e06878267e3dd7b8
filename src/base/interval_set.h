// A set of octets of a stream as disjoint half-open ranges [begin, end), in order: what was
// received, what was acknowledged selectively, what is still missing.
//
// Invariants: every range is at least one octet long; ranges neither overlap nor touch (insertion
// joins those that do); there are at most limit() of them. An insertion that would need one more is
// refused and changes nothing.
//
// Ranges lie in one piece of memory with free room at both ends, so that appending and dropping
// from the front, which is what streams do, cost a constant; a change in the middle moves the
// shorter side. Finding is a binary search. An empty set that never held anything owns no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace urnic {

struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // one past the last

  constexpr std::uint64_t size() const { return end - begin; }
  constexpr bool operator==(const Interval&) const = default;
};

class IntervalSet {
 public:
  enum class Change : std::uint8_t {
    None,           // nothing to insert (empty range)
    Duplicate,      // every octet was there
    New,            // a range of its own
    ExtendedLeft,   // one range grew at its begin only
    ExtendedRight,  // one range grew at its end only
    ExtendedBoth,   // one range grew at both ends
    Merged,         // two or more ranges became one
    Refused,        // would exceed the limit; nothing changed
  };
  struct Inserted {
    Change change = Change::None;
    std::size_t index = 0;    // of the range that now holds the octets (unless None, Refused)
    std::uint64_t added = 0;  // octets that were not there before
  };

  // 0: no limit.
  explicit IntervalSet(std::size_t limit = 0) : limit_(limit) {}

  std::size_t limit() const { return limit_; }
  // Ranges already there stay, even if they are more.
  void set_limit(std::size_t limit) { limit_ = limit; }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }  // number of ranges
  std::uint64_t octets() const { return octets_; }
  std::size_t memory() const { return slots_.capacity() * sizeof(Interval); }
  const Interval& operator[](std::size_t i) const { return slots_[first_ + i]; }
  const Interval* begin() const { return slots_.data() + first_; }
  const Interval* end() const { return slots_.data() + first_ + size_; }
  const Interval& front() const { return *begin(); }
  const Interval& back() const { return *(end() - 1); }

  // [begin, end); begin <= end.
  Inserted insert(std::uint64_t begin, std::uint64_t end);
  // Forget everything before `offset`; returns the number of octets forgotten.
  std::uint64_t erase_below(std::uint64_t offset);
  // Forget everything from `offset` on; returns the number of octets forgotten.
  std::uint64_t erase_from(std::uint64_t offset);
  // Take the lowest range out.
  void pop_front();
  // Forgets all; keeps the memory.
  void clear();
  // Memory for no more than what is there.
  void shrink_to_fit();

  bool contains(std::uint64_t offset) const;
  // Is all / any of [begin, end) there? An empty range: contains yes, intersects no.
  bool contains(std::uint64_t begin, std::uint64_t end) const;
  bool intersects(std::uint64_t begin, std::uint64_t end) const;
  // The first range that ends behind `offset` (it holds `offset` or is the next one); size() if
  // there is none.
  std::size_t find(std::uint64_t offset) const;
  // The first octet at or after `from` that is not there.
  std::uint64_t first_missing(std::uint64_t from) const;
  // The first missing piece of [from, to).
  std::optional<Interval> first_gap(std::uint64_t from, std::uint64_t to) const;

 private:
  Interval* at(std::size_t i) { return slots_.data() + first_ + i; }
  void insert_at(std::size_t i, Interval range);
  void erase_at(std::size_t i, std::size_t count);
  void make_room();

  std::vector<Interval> slots_;  // ranges in [first_, first_ + size_), the rest is free
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::size_t limit_;
  std::uint64_t octets_ = 0;
};

}  // namespace urnic
