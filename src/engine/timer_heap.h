// Deadlines of connections: a lazy binary heap. An entry may be older than its connection's real
// deadline (it was pushed later since); whoever pops it looks and pushes again. A connection has an
// entry at or before its deadline at all times, so nothing is ever late.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "base/time.h"

namespace urnic::engine {

class TimerHeap {
 public:
  struct Entry {
    Instant at;
    std::uint32_t id;
    bool operator>(const Entry& o) const { return at > o.at || (at == o.at && id > o.id); }
  };
  void push(Instant at, std::uint32_t id) { heap_.push({at, id}); }
  Instant earliest() const { return heap_.empty() ? Instant::never() : heap_.top().at; }
  // The earliest entry that is due, removed; false when none is.
  bool pop_due(Instant now, Entry* out) {
    if (heap_.empty() || heap_.top().at > now) return false;
    *out = heap_.top();
    heap_.pop();
    return true;
  }
  std::size_t size() const { return heap_.size(); }

 private:
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
};

}  // namespace urnic::engine
