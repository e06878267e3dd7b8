// Iterates over a list of SGEs, for every part of a message that is sent or placed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "verbs/memory.h"

namespace urnic::verbs {

// Calls f(sge, at, n) for each SGE that contains some of the `length` bytes starting at `offset`,
// in order: n bytes (never 0) starting at byte `at` of that SGE. Returns false when f returned
// false, which ends the walk, or when the list ends before the bytes do.
template <class F>
[[gnu::always_inline]] inline bool for_each_piece(std::span<const Sge> sges, std::uint64_t offset,
                                                  std::uint64_t length, F&& f) {
  if (length == 0) return true;
  for (const Sge& sge : sges) {
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::uint64_t n = std::min<std::uint64_t>(length, sge.length - offset);
    if (!f(sge, offset, n)) return false;
    length -= n;
    if (length == 0) return true;
    offset = 0;
  }
  return false;
}

}  // namespace urnic::verbs
