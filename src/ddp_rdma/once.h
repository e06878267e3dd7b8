// What lies in memory that a peer may write meanwhile is read once: a value that has been looked at
// is not read a second time behind the decision, whatever the compiler would like (E-19).
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace urnic::ddp {

// `value`, of which the compiler no longer knows where it came from.
template <class T>
[[gnu::always_inline]] inline T once(T value) {
  asm("" : "+r"(value));
  return value;
}

// The first bytes of a ULPDU, at most N, copied out.
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
