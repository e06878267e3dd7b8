#include "rsockets/receive_side.h"

#include <algorithm>
#include <cstring>

namespace urnic::rsockets {

void ReceiveSide::open(std::uint32_t buffer, std::uint16_t credits) {
  *this = {};
  size_ = buffer;
  credits_ = credits;
  granted_ = free_ = next_half_ = half();
  grant_from_ = credits / 2;
}

bool ReceiveSide::on_data(std::uint32_t bytes) {
  if (bytes > granted_ || messages_.size() >= credits_) return false;
  if (bytes == 0) {
    ++number_;
    return true;
  }
  granted_ -= bytes;
  unread_ += bytes;
  messages_.push_back(bytes);
  return true;
}

std::uint64_t ReceiveSide::peek(std::span<const std::uint8_t> buffer, std::uint8_t* to,
                                std::uint64_t size) const {
  const std::uint64_t all = std::min(size, unread_);
  const std::uint64_t first = std::min<std::uint64_t>(all, size_ - at_);
  std::memcpy(to, buffer.data() + at_, first);
  std::memcpy(to + first, buffer.data(), all - first);
  return all;
}

std::uint64_t ReceiveSide::read(std::span<const std::uint8_t> buffer, std::uint8_t* to,
                                std::uint64_t size) {
  const std::uint64_t all = peek(buffer, to, size);
  take(all);
  return all;
}

void ReceiveSide::take(std::uint64_t bytes) {
  unread_ -= bytes;
  free_ += static_cast<std::uint32_t>(bytes);
  at_ = static_cast<std::uint32_t>((at_ + bytes) % size_);
  while (!messages_.empty() && bytes >= messages_.front()) {
    bytes -= messages_.front();
    messages_.pop_front();
    ++number_;
  }
  if (bytes != 0) messages_.front() -= static_cast<std::uint32_t>(bytes);
}

bool ReceiveSide::grant_due() const {
  return free_ >= half() || static_cast<std::int16_t>(number_ - grant_from_) >= 0;
}

ReceiveSide::Grant ReceiveSide::grant() {
  Grant g;
  g.limit = static_cast<std::uint16_t>(number_ + credits_);
  grant_from_ = static_cast<std::uint16_t>(number_ + credits_ / 2);
  if (free_ < half()) return g;
  g.offset = next_half_;
  free_ -= half();
  granted_ += half();
  next_half_ = next_half_ == 0 ? half() : 0;
  return g;
}

}  // namespace urnic::rsockets
