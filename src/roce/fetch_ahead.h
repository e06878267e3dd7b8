// Prefetching for engines with many queue pairs, where the state of one is in no cache when its
// turn comes. Its cache lines are prefetched together and early: the context when a frame is
// staged, and what it points to once the whole burst is staged, before the first frame is
// processed. The last queue pair prefetched is not prefetched again.
//
// Has no effect but speed; owned by the side of one engine.
#pragma once

#include <cstddef>
#include <utility>

#include "roce/context.h"

namespace urnic::roce {

class FetchAhead {
 public:
  // Null: no queue pair.
  [[gnu::always_inline]] void context(const Context* c) {
    if (c == context_) return;
    several_ = true;
    context_ = c;
    if (c != nullptr) lines(c, sizeof *c);
  }
  // True if more than one queue pair has been prefetched since the last call.
  bool take_several() { return std::exchange(several_, false); }
  // Prefetches what the context points to.
  [[gnu::always_inline]] void halves(const Context* c) {
    if (c == halves_) return;
    halves_ = c;
    if (c != nullptr) behind(*c);
  }

 private:
  // Always inline: the compiler would drop a call of a function that only prefetches.
  [[gnu::always_inline]] static void lines(const void* at, std::size_t bytes) {
    constexpr std::size_t kLine = 64;
    const char* const p = static_cast<const char*>(at);
    for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(p + i, 1);
  }
  [[gnu::always_inline]] static void behind(const Context& c) {
    lines(c.qp, sizeof *c.qp);
    if (const auto* const half = c.responder.rc()) lines(half, sizeof *half);
    if (const auto* const half = c.requester.rc()) lines(half, sizeof *half);
  }

  const Context *context_ = nullptr, *halves_ = nullptr;  // the last one
  bool several_ = false;
};

}  // namespace urnic::roce
