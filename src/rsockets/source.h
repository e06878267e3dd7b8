// The bytes that a program sends: one part or several, taken from the front.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace urnic::rsockets {

class Source {
 public:
  Source(const iovec* parts, std::size_t count) : part_(parts), end_(parts + count) {
    for (std::size_t i = 0; i < count; ++i) left_ += parts[i].iov_len;
  }

  std::size_t left() const { return left_; }

  // Copies the next `size` bytes, at most left().
  void take(std::uint8_t* to, std::size_t size) {
    left_ -= size;
    while (size != 0 && part_ != end_) {
      const std::size_t n = std::min(size, part_->iov_len - at_);
      if (n != 0) std::memcpy(to, static_cast<const std::uint8_t*>(part_->iov_base) + at_, n);
      to += n;
      size -= n;
      at_ += n;
      if (at_ == part_->iov_len) {
        ++part_;
        at_ = 0;
      }
    }
  }

 private:
  const iovec *part_, *end_;
  std::size_t at_ = 0, left_ = 0;
};

}  // namespace urnic::rsockets
