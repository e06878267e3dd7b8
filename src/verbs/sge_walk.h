// Iterates over a list of SGEs, for every part of a message that is sent or placed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "verbs/memory.h"

namespace urnic::verbs {

inline std::uint64_t length_of(const Sge& sge) {
  return sge.length;
}
inline std::uint64_t length_of(std::span<std::uint8_t> piece) {
  return piece.size();
}

// Calls f(piece, at, n) for each piece (an SGE, or memory) that contains some of the `length` bytes
// starting at `offset`, in order: n bytes (never 0) starting at byte `at` of that piece. Returns
// false when f returned false, which ends the walk, or when the list ends before the bytes do.
template <class Pieces, class F>
[[gnu::always_inline]] inline bool for_each_piece(const Pieces& pieces, std::uint64_t offset,
                                                  std::uint64_t length, F&& f) {
  if (length == 0) return true;
  for (const auto& piece : pieces) {
    const std::uint64_t whole = length_of(piece);
    if (offset >= whole) {
      offset -= whole;
      continue;
    }
    const std::uint64_t n = std::min<std::uint64_t>(length, whole - offset);
    if (!f(piece, offset, n)) return false;
    length -= n;
    if (length == 0) return true;
    offset = 0;
  }
  return false;
}

}  // namespace urnic::verbs
