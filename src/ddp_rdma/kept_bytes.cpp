#include "ddp_rdma/kept_bytes.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>

namespace urnic::ddp {
namespace {

// The first chunk is small, for connections that keep few bytes. Further chunks that are needed at
// the same time are larger.
constexpr unsigned kFirstShift = 12;
constexpr unsigned kNextShift = 16;

}  // namespace

KeptBytes::~KeptBytes() {
  assert(chunks_ == 0);
}

std::uint8_t* KeptBytes::allocate(std::uint32_t len) {
  assert(len != 0 && len <= kMaxBlock);
  const std::uint32_t need = kBlockHeader + ((len + 7) & ~7u);
  if (current_ == nullptr || current_->size - current_->used < need) {
    // The rest of the current chunk is unused until its blocks are freed.
    const std::uint32_t whole = need + static_cast<std::uint32_t>(sizeof(Chunk));
    const unsigned shift = std::max<unsigned>(chunks_ == 0 ? kFirstShift : kNextShift,
                                              static_cast<unsigned>(std::bit_width(whole - 1)));
    auto* chunk = ::new (pool_->take(shift)) Chunk{1u << shift, sizeof(Chunk), 0, shift};
    current_ = chunk;
    ++chunks_;
  }
  std::uint8_t* at = reinterpret_cast<std::uint8_t*>(current_) + current_->used;
  current_->used += need;
  ++current_->live;
  std::memcpy(at, &current_, sizeof current_);
  return at + kBlockHeader;
}

void KeptBytes::free(std::uint8_t* block) {
  Chunk* chunk;
  std::memcpy(&chunk, block - kBlockHeader, sizeof chunk);
  if (--chunk->live != 0) return;
  if (chunk == current_) current_ = nullptr;
  pool_->give(reinterpret_cast<std::uint8_t*>(chunk), chunk->shift);
  --chunks_;
}

}  // namespace urnic::ddp
