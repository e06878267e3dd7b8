// Reads memory that a peer may write at the same time exactly once: after a check, the compiler
// cannot read the value a second time (E-19).
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace urnic::ddp {

// Returns `value` and hides its origin from the compiler.
template <class T>
[[gnu::always_inline]] inline T once(T value) {
  asm("" : "+r"(value));
  return value;
}

// A copy of the first bytes of a ULPDU, at most N.
template <std::size_t N>
class CopiedHead {
 public:
  explicit CopiedHead(ByteView ulpdu) : size_(ulpdu.size() < N ? ulpdu.size() : N) {
    if (size_ != 0) std::memcpy(bytes_, ulpdu.data(), size_);
    asm("" : "+m"(bytes_));
  }
  ByteView view() const { return {bytes_, size_}; }

 private:
  std::size_t size_;
  std::uint8_t bytes_[N];
};

}  // namespace urnic::ddp
