#include "base/buffer_pool.h"

#include <cassert>
#include <new>

namespace urnic {
namespace {

constexpr std::align_val_t kAlign{64};

}  // namespace

BufferPool::~BufferPool() {
  for (auto& blocks : free_) {
    for (std::uint8_t* block : blocks) ::operator delete(block, kAlign);
  }
}

std::uint8_t* BufferPool::take(unsigned shift) {
  assert(shift >= kMinShift && shift <= kMaxShift);
  const std::size_t size = std::size_t{1} << shift;
  in_use_ += size;
  auto& blocks = free_[shift - kMinShift];
  if (blocks.empty()) return static_cast<std::uint8_t*>(::operator new(size, kAlign));
  std::uint8_t* block = blocks.back();
  blocks.pop_back();
  cached_ -= size;
  return block;
}

void BufferPool::give(std::uint8_t* block, unsigned shift) {
  assert(shift >= kMinShift && shift <= kMaxShift);
  const std::size_t size = std::size_t{1} << shift;
  in_use_ -= size;
  if (cached_ + size <= cache_limit_) {
    try {
      free_[shift - kMinShift].push_back(block);
      cached_ += size;
      return;
    } catch (const std::bad_alloc&) {
      // Returning a block must not require memory.
    }
  }
  ::operator delete(block, kAlign);
}

}  // namespace urnic
