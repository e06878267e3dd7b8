// Where there are many queue pairs, what is kept of one is in no cache when its turn comes: its
// lines are asked for together and early, the context when a frame is staged, what it points to
// when all of the burst are, before the first is worked on. Whose lines were asked for last is not
// asked again.
//
// Nothing but hints; owned by the side of one engine.
#pragma once

#include <cstddef>
#include <utility>

#include "roce/context.h"

namespace urnic::roce {

class FetchAhead {
 public:
  // Null: nobody's.
  [[gnu::always_inline]] void context(const Context* c) {
    if (c == context_) return;
    several_ = true;
    context_ = c;
    if (c != nullptr) lines(c, sizeof *c);
  }
  // More than one has been asked for since this was asked the last time.
  bool take_several() { return std::exchange(several_, false); }
  // What lies behind it.
  [[gnu::always_inline]] void halves(const Context* c) {
    if (c == halves_) return;
    halves_ = c;
    if (c != nullptr) behind(*c);
  }

 private:
  // Always in line: a function of prefetches alone has no effect the compiler would call it for.
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
