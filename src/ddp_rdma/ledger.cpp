#include "ddp_rdma/ledger.h"

#include <bit>
#include <cassert>
#include <new>

namespace urnic::ddp {
namespace {

constexpr unsigned kRecordShift = 5;  // 32 bytes
constexpr unsigned kFirstShift = BufferPool::kMinShift;

unsigned shift_of(std::uint32_t mask) {
  return static_cast<unsigned>(std::bit_width(mask)) + kRecordShift;
}

}  // namespace

void Ledger::grow() {
  const unsigned shift = records_ == nullptr ? kFirstShift : shift_of(mask_) + 1;
  auto* records = reinterpret_cast<Record*>(pool_->take(shift));
  const std::uint32_t mask = (1u << (shift - kRecordShift)) - 1;
  for (std::uint32_t p = head_; p != tail_; ++p) {
    ::new (records + (p & mask)) Record(records_[p & mask_]);
  }
  if (records_ != nullptr) {
    pool_->give(reinterpret_cast<std::uint8_t*>(records_), shift_of(mask_));
  }
  records_ = records;
  mask_ = mask;
}

void Ledger::release() {
  if (records_ == nullptr) return;
  pool_->give(reinterpret_cast<std::uint8_t*>(records_), shift_of(mask_));
  records_ = nullptr;
  mask_ = 0;
}

std::uint32_t Ledger::find(std::uint32_t at) {
  assert(!empty());
  // TCP usually asks for the newest record, or for the next one after the last retransmission.
  for (std::uint32_t p = hint_; p - head_ < size() && p - hint_ < 3; ++p) {
    const Record& r = records_[p & mask_];
    if (at - r.begin < r.wire) {
      hint_ = p;
      return p - head_;
    }
  }
  std::uint32_t low = 0, high = size();  // the record is in [low, high)
  const std::uint32_t base = front().begin;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if ((*this)[middle].begin - base <= at - base) {
      low = middle;
    } else {
      high = middle;
    }
  }
  hint_ = head_ + low;
  return low;
}

}  // namespace urnic::ddp
