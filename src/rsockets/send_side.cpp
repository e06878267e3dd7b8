#include "rsockets/send_side.h"

#include <algorithm>

namespace urnic::rsockets {

void SendSide::open(std::uint32_t ring, std::uint32_t slots) {
  *this = {};
  ring_ = free_ = ring;
  all_slots_ = slots_ = slots;
}

void SendSide::begin(std::uint16_t credits, const Entry& first) {
  number_ = 0;
  limit_ = credits;
  at_ = 0;
  targets_[0] = first;
  targets_left_ = 1;
}

bool SendSide::can_send() const {
  return slots_ >= kPostsOfData && free_ >= kLowWater && number_ != limit_ && targets_left_ != 0;
}

std::uint32_t SendSide::next_piece(std::uint32_t wanted) const {
  return std::min({wanted, kMaxPiece, free_, targets_[at_].length});
}

std::uint32_t SendSide::next_direct(std::uint32_t wanted, std::uint64_t left) const {
  const std::uint32_t most = std::min({wanted, kMaxPiece, free_});
  return left < most ? static_cast<std::uint32_t>(left) : most;
}

SendSide::Piece SendSide::from_ring(std::uint32_t length, bool inlined) {
  Piece p;
  if (inlined) return p;
  p.offset = head_;
  p.first = std::min(length, ring_ - head_);
  p.second = length - p.first;
  free_ -= length;
  head_ = (head_ + length) % ring_;
  return p;
}

SendSide::Piece SendSide::take(std::uint32_t length, bool inlined) {
  Piece p = from_ring(length, inlined);
  slots_ -= kPostsOfData;
  ++number_;
  Entry& target = targets_[at_];
  p.to = {target.address, target.key, length};
  target.address += length;
  target.length -= length;
  if (target.length == 0) {  // the next target is used only when this one is full
    at_ = (at_ + 1) % kTargets;
    --targets_left_;
  }
  return p;
}

SendSide::Piece SendSide::take_direct(std::uint32_t length, bool inlined) {
  Piece p = from_ring(length, inlined);
  --slots_;
  p.to.length = length;
  return p;
}

void SendSide::take_mapping() {
  slots_ -= kPostsOfData;
  ++number_;
}

bool SendSide::on_target(const Entry& e) {
  if (targets_left_ == kTargets) return false;
  targets_[(at_ + targets_left_) % kTargets] = e;
  ++targets_left_;
  return true;
}

void SendSide::on_done(std::uint32_t bytes) {
  ++slots_;
  free_ += bytes;
}

}  // namespace urnic::rsockets
