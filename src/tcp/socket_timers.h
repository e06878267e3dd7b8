// When endpoints must be woken: a heap with the earliest time on top. Equal times are in the order
// of slots, so that runs repeat. An entry may be stale: its endpoint is gone, or its deadline has
// moved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace urnic::tcp {

class SocketTimers {
 public:
  struct Entry {
    Instant at;
    std::uint32_t slot = 0;
    std::uint32_t generation = 0;
  };
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  const Entry& front() const { return heap_.front(); }
  void push(const Entry& e) {
    heap_.push_back(e);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
  // Removes entries for which `wanted(entry)` is false. It visits every entry, so the owner decides
  // when.
  template <class Wanted>
  void prune(Wanted&& wanted) {
    std::erase_if(heap_, [&](const Entry& e) { return !wanted(e); });
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

 private:
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.slot > b.slot;
  }
  std::vector<Entry> heap_;
};

}  // namespace urnic::tcp
