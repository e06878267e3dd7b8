// A bounded queue of frames that the network layer wants to send.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace urnic::net {

class FrameQueue {
 public:
  explicit FrameQueue(std::size_t capacity) : buffer_(capacity) {}

  bool empty() const { return head_ == tail_; }
  // Length of the oldest frame; 0 if the queue is empty.
  std::size_t front_size() const;
  // Appends a zero-filled frame of `size` bytes; empty if it does not fit. The view is valid until
  // the next call.
  MutBytes append(std::size_t size);
  // Moves the oldest frame to `dst` and returns its length. Returns 0 if the queue is empty or
  // `dst` is too small (then the frame stays).
  std::size_t pop(MutBytes dst);
  // Removes the oldest frame.
  void discard();
  void clear() { head_ = tail_ = 0; }

 private:
  static constexpr std::size_t kPrefix = 4;  // the length field before each record
  std::vector<std::uint8_t> buffer_;
  std::size_t head_ = 0, tail_ = 0;
};

}  // namespace urnic::net
