#include "net/frame_queue.h"

#include <cstring>

namespace urnic::net {

std::size_t FrameQueue::front_size() const {
  return empty() ? 0 : load_le32(buffer_.data() + head_);
}

MutBytes FrameQueue::append(std::size_t size) {
  if (size == 0 || size > buffer_.size() || kPrefix > buffer_.size() - size) return {};
  const std::size_t need = kPrefix + size;
  if (buffer_.size() - tail_ < need) {
    // The queue is emptied every burst, so moving the rest to the front is rare and cheap.
    if (buffer_.size() - (tail_ - head_) < need) return {};
    std::memmove(buffer_.data(), buffer_.data() + head_, tail_ - head_);
    tail_ -= head_;
    head_ = 0;
  }
  std::uint8_t* record = buffer_.data() + tail_;
  store_le32(record, static_cast<std::uint32_t>(size));
  std::memset(record + kPrefix, 0, size);
  tail_ += need;
  return {record + kPrefix, size};
}

std::size_t FrameQueue::pop(MutBytes dst) {
  const std::size_t size = front_size();
  if (size == 0 || size > dst.size()) return 0;
  std::memcpy(dst.data(), buffer_.data() + head_ + kPrefix, size);
  discard();
  return size;
}

void FrameQueue::discard() {
  if (empty()) return;
  head_ += kPrefix + front_size();
  if (head_ == tail_) head_ = tail_ = 0;
}

}  // namespace urnic::net
