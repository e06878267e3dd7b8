// Runs a step of a connection. If memory runs out in the middle of it, the step stays half done:
// this connection ends, and no other (docs/decisions/out-of-memory.md).
#pragma once

#include <new>
#include <utility>

#include "iwarp/ending.h"

namespace urnic::iwarp {

template <class F>
void guard_allocation(Ending& ending, Connection& c, Instant now, F&& step) {
  try {
    std::forward<F>(step)();
  } catch (const std::bad_alloc&) {
    ending.out_of_memory(c, now);
  }
}

}  // namespace urnic::iwarp
