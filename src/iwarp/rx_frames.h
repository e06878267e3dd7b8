// The frames of a segment compared with the window, for the steps after validation.
#pragma once

#include <cstddef>

#include "fastpath/validation_unit.h"
#include "tcp/tcb.h"

namespace urnic::iwarp {

// E-45: number of frames of the segment that lie completely in the window; frames beyond it are
// ignored.
inline std::size_t frames_inside(const fastpath::Validation& v, const tcp::Check& check) {
  std::size_t n = v.frames.size();
  while (n != 0 && check.begin + v.frames[n - 1].offset + v.frames[n - 1].length > check.new_end) {
    --n;
  }
  return n;
}

}  // namespace urnic::iwarp
