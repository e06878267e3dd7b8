// Deadlines of connections: a lazy binary heap. An entry may be older than its connection's real
// deadline (it was pushed later since); whoever pops it looks and pushes again. A connection has an
// entry at or before its deadline at all times, so nothing is ever late. Entries nobody wants any
// more go when their time comes, or earlier by prune(): connections that come and go faster than
// their deadlines would leave thousands.
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
  // The earliest entry that is due, removed; false when none is.
  bool pop_due(Instant now, Entry* out) {
    if (heap_.empty() || heap_.front().at > now) return false;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    *out = heap_.back();
    heap_.pop_back();
    return true;
  }
  // Removes what `wanted(entry)` says no to. When, is the owner's choice: it costs a look at each.
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
