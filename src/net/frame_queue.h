// Frames the network layer wants sent, in order, in a bounded block of memory.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace urnic::net {

class FrameQueue {
 public:
  explicit FrameQueue(std::size_t capacity) : buffer_(capacity) {}

  bool empty() const { return head_ == tail_; }
  // Bytes of the oldest frame; 0 when empty.
  std::size_t front_size() const;
  // Room for a frame of `size` bytes at the end, zero-filled; empty when it does not fit. The
  // view is valid until the next call.
  MutBytes append(std::size_t size);
  // Moves the oldest frame to `dst` and returns its length; 0 when empty or `dst` is too small
  // (then the frame stays).
  std::size_t pop(MutBytes dst);
  // Forget the oldest frame.
  void discard();
  void clear() { head_ = tail_ = 0; }

 private:
  static constexpr std::size_t kPrefix = 4;  // length of the record in front of it
  std::vector<std::uint8_t> buffer_;
  std::size_t head_ = 0, tail_ = 0;
};

}  // namespace urnic::net
