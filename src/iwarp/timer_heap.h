// Deadlines of connections: a lazy binary heap. An entry may be earlier than its connection's real
// deadline, which has moved since; the code that pops it checks and pushes again. A connection
// always has an entry at or before its deadline, so no timer is late. Stale entries are removed
// when their time comes, or earlier by prune(): connections that open and close faster than their
// deadlines would leave thousands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/time.h"

namespace urnic::iwarp {

class TimerHeap {
 public:
  struct Entry {
    Instant at;
    std::uint64_t id;
    bool operator>(const Entry& o) const { return at > o.at || (at == o.at && id > o.id); }
  };
  void push(Instant at, std::uint64_t id) {
    heap_.push_back({at, id});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  Instant earliest() const { return heap_.empty() ? Instant::never() : heap_.front().at; }
  // Removes the earliest entry that is due; false if none is.
  bool pop_due(Instant now, Entry* out) {
    if (heap_.empty() || heap_.front().at > now) return false;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    *out = heap_.back();
    heap_.pop_back();
    return true;
  }
  // Removes entries for which `wanted(entry)` is false. It visits every entry, so the owner decides
  // when.
  template <class Wanted>
  void prune(Wanted&& wanted) {
    std::erase_if(heap_, [&](const Entry& e) { return !wanted(e); });
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  std::size_t size() const { return heap_.size(); }

 private:
  std::vector<Entry> heap_;
};

}  // namespace urnic::iwarp
