// The deadlines of many objects: a heap with one place per object, so that moving a deadline leaves
// no stale entry behind. Only reserve() allocates.
//
// T has the members `Instant due` (initially never()) and `std::uint32_t place` (kNowhere). The
// heap does not own the objects; an object must be set to never() before it is destroyed. Not
// thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"

namespace urnic {

template <class T>
class Deadlines {
 public:
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  // Makes room for `all` objects.
  void reserve(std::size_t all) {
    if (all > heap_.capacity()) heap_.reserve(2 * all);
  }
  // never(): removes the deadline.
  void set(T& c, Instant due) {
    if (c.due == due) return;
    c.due = due;
    if (due.is_never()) {
      remove(c);
    } else if (c.place == kNowhere) {
      heap_.push_back(&c);
      put(heap_.size() - 1, &c);
      up(c.place);
    } else {
      settle(c.place);
    }
  }
  Instant next() const { return heap_.empty() ? Instant::never() : heap_.front()->due; }
  // Removes the earliest deadline, next(), and returns its object. The heap must not be empty.
  T* take() {
    T* const c = heap_.front();
    set(*c, Instant::never());
    return c;
  }

 private:
  void put(std::size_t at, T* c) {
    heap_[at] = c;
    c->place = static_cast<std::uint32_t>(at);
  }
  void remove(T& c) {
    if (c.place == kNowhere) return;
    const std::size_t at = c.place;
    c.place = kNowhere;
    T* const last = heap_.back();
    heap_.pop_back();
    if (last == &c) return;
    put(at, last);
    settle(at);
  }
  void settle(std::size_t at) { down(up(at)); }
  std::size_t up(std::size_t at) {
    while (at != 0 && heap_[at]->due < heap_[(at - 1) / 2]->due) {
      swap(at, (at - 1) / 2);
      at = (at - 1) / 2;
    }
    return at;
  }
  void down(std::size_t at) {
    for (;;) {
      std::size_t least = 2 * at + 1;
      if (least >= heap_.size()) return;
      if (least + 1 < heap_.size() && heap_[least + 1]->due < heap_[least]->due) ++least;
      if (!(heap_[least]->due < heap_[at]->due)) return;
      swap(at, least);
      at = least;
    }
  }
  void swap(std::size_t a, std::size_t b) {
    T* const at_a = heap_[a];
    put(a, heap_[b]);
    put(b, at_a);
  }

  std::vector<T*> heap_;
};

}  // namespace urnic
