#include "ddp_rdma/send_notes.h"

#include <cstring>

#include "ddp_rdma/serial.h"

namespace urnic::ddp {

bool HeldSends::put(std::uint32_t msn, const SendEnd& end) {
  // Usually it goes after the last one.
  std::uint32_t at = count_;
  while (at != 0 && msn_distance(notes_[first_ + at - 1].msn, msn) > 0) --at;
  if (at != 0 && notes_[first_ + at - 1].msn == msn) {
    notes_[first_ + at - 1].end = end;
    return true;
  }
  if (count_ >= threshold_) return false;
  if (first_ + count_ == room_) make_room();
  Note* const here = notes_ + first_ + at;
  std::memmove(here + 1, here, (count_ - at) * sizeof(Note));
  *here = {msn, end};
  ++count_;
  return true;
}

bool HeldSends::take(std::uint32_t msn, SendEnd* out) {
  bool found = false;
  while (count_ != 0 && msn_distance(notes_[first_].msn, msn) <= 0) {
    found = notes_[first_].msn == msn;
    if (found) *out = notes_[first_].end;
    ++first_;
    if (--count_ == 0) clear();
  }
  return found;
}

void HeldSends::make_room() {
  if (first_ != 0) {
    std::memmove(notes_, notes_ + first_, count_ * sizeof(Note));
    first_ = 0;
    return;
  }
  const unsigned shift = notes_ == nullptr ? BufferPool::kMinShift : shift_ + 1;
  auto* more = reinterpret_cast<Note*>(pool_->take(shift));
  if (notes_ != nullptr) {
    std::memcpy(more, notes_, count_ * sizeof(Note));
    pool_->give(reinterpret_cast<std::uint8_t*>(notes_), shift_);
  }
  notes_ = more;
  shift_ = shift;
  room_ = static_cast<std::uint32_t>((std::size_t{1} << shift) / sizeof(Note));
}

void HeldSends::clear() {
  if (notes_ != nullptr) pool_->give(reinterpret_cast<std::uint8_t*>(notes_), shift_);
  notes_ = nullptr;
  first_ = count_ = room_ = 0;
}

}  // namespace urnic::ddp
