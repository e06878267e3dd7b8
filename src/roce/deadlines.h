// When something is due for which queue pair: a heap with one place for each, so that a deadline
// moves without leaving anything behind, and nothing is allocated but by reserve().
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"
#include "roce/context.h"

namespace urnic::roce {

class Deadlines {
 public:
  // Room for one more queue pair.
  void reserve(std::size_t contexts) {
    if (contexts > heap_.capacity()) heap_.reserve(2 * contexts);
  }
  // never(): none any more.
  void set(Context& c, Instant due) {
    if (c.due == due) return;
    c.due = due;
    if (due.is_never()) {
      remove(c);
    } else if (c.place == Context::kNowhere) {
      heap_.push_back(&c);
      put(heap_.size() - 1, &c);
      up(c.place);
    } else {
      settle(c.place);
    }
  }
  Instant next() const { return heap_.empty() ? Instant::never() : heap_.front()->due; }
  // The one whose deadline is next() has none any more. There is one.
  Context* take() {
    Context* const c = heap_.front();
    set(*c, Instant::never());
    return c;
  }

 private:
  void put(std::size_t at, Context* c) {
    heap_[at] = c;
    c->place = static_cast<std::uint32_t>(at);
  }
  void remove(Context& c) {
    if (c.place == Context::kNowhere) return;
    const std::size_t at = c.place;
    c.place = Context::kNowhere;
    Context* const last = heap_.back();
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
    Context* const at_a = heap_[a];
    put(a, heap_[b]);
    put(b, at_a);
  }

  std::vector<Context*> heap_;
};

}  // namespace urnic::roce
