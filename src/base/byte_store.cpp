#include "base/byte_store.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

namespace urnic {
namespace {

constexpr std::size_t kKeptPlaces = 4;

std::uint8_t* linked(const std::uint8_t* chunk) {
  std::uint8_t* next;
  std::memcpy(&next, chunk, sizeof next);
  return next;
}

}  // namespace

ByteStore::ByteStore(ChunkPool* pool, std::uint64_t capacity, std::uint64_t base)
    : pool_(pool),
      shift_(static_cast<unsigned>(std::countr_zero(pool->chunk_size()))),
      capacity_(capacity),
      base_(base),
      high_(base),
      first_chunk_(base >> shift_) {}

ByteStore::~ByteStore() {
  reset(base_);
}

bool ByteStore::in_window(std::uint64_t offset, std::size_t length) const {
  // Avoid a sum, because offsets near 2^64 could wrap around.
  return offset >= base_ && offset - base_ <= capacity_ && length <= capacity_ - (offset - base_);
}

std::uint8_t* ByteStore::chunk_at(std::uint64_t number) const {
  if (number < first_chunk_ || number - first_chunk_ >= chunks_.size()) return nullptr;
  return chunks_[static_cast<std::size_t>(number - first_chunk_)];
}

std::size_t ByteStore::missing_chunks(std::uint64_t first, std::uint64_t last) const {
  std::size_t missing = 0;
  for (std::uint64_t c = first; c <= last; ++c) missing += chunk_at(c) == nullptr ? 1 : 0;
  return missing;
}

bool ByteStore::can_write(std::uint64_t offset, std::size_t length) const {
  if (!in_window(offset, length)) return false;
  if (length == 0) return true;
  return missing_chunks(chunk_of(offset), chunk_of(offset + length - 1)) <= pool_->available();
}

bool ByteStore::add_chunks(std::uint64_t first, std::uint64_t last, std::size_t missing) {
  // Take all chunks before changing anything; meanwhile they are linked through their own memory.
  std::uint8_t* taken = nullptr;
  for (; missing != 0; --missing) {
    std::uint8_t* chunk = pool_->take();
    if (chunk == nullptr) {
      while (taken != nullptr) pool_->give(std::exchange(taken, linked(taken)));
      return false;
    }
    std::memcpy(chunk, &taken, sizeof taken);
    taken = chunk;
  }
  while (first_chunk_ + chunks_.size() <= last) chunks_.push_back(nullptr);
  for (std::uint64_t c = first; c <= last; ++c) {
    std::uint8_t*& slot = chunks_[static_cast<std::size_t>(c - first_chunk_)];
    if (slot != nullptr) continue;
    slot = std::exchange(taken, linked(taken));
    ++chunk_count_;
  }
  return true;
}

bool ByteStore::write(std::uint64_t offset, ByteView bytes) {
  if (!in_window(offset, bytes.size())) return false;
  if (bytes.empty()) return true;
  const std::uint64_t first = chunk_of(offset), last = chunk_of(offset + bytes.size() - 1);
  const std::size_t missing = missing_chunks(first, last);
  if (missing != 0 && !add_chunks(first, last, missing)) return false;

  const std::uint8_t* from = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t at = offset;
  while (left != 0) {
    const std::size_t in_chunk = static_cast<std::size_t>(at) & (pool_->chunk_size() - 1);
    const std::size_t n = std::min(left, pool_->chunk_size() - in_chunk);
    std::memcpy(chunk_at(chunk_of(at)) + in_chunk, from, n);
    from += n;
    left -= n;
    at += n;
  }
  high_ = std::max(high_, at);
  return true;
}

ByteView ByteStore::view(std::uint64_t offset, std::size_t most) const {
  if (offset < base_ || offset >= high_) return {};
  const std::uint8_t* chunk = chunk_at(chunk_of(offset));
  if (chunk == nullptr) return {};
  const std::size_t in_chunk = static_cast<std::size_t>(offset) & (pool_->chunk_size() - 1);
  const std::uint64_t n =
      std::min<std::uint64_t>({most, pool_->chunk_size() - in_chunk, high_ - offset});
  return {chunk + in_chunk, static_cast<std::size_t>(n)};
}

bool ByteStore::read(std::uint64_t offset, MutBytes dst) const {
  while (!dst.empty()) {
    const ByteView piece = view(offset, dst.size());
    if (piece.empty()) return false;
    std::memcpy(dst.data(), piece.data(), piece.size());
    offset += piece.size();
    dst = dst.subspan(piece.size());
  }
  return true;
}

void ByteStore::drop_below(std::uint64_t number) {
  for (; !chunks_.empty() && first_chunk_ < number; ++first_chunk_) {
    if (chunks_.front() != nullptr) {
      pool_->give(chunks_.front());
      --chunk_count_;
    }
    chunks_.pop_front();
  }
  // Keep room for a few pointers, so that a stream that is read as fast as it arrives does not
  // allocate.
  if (chunks_.empty() && chunks_.capacity() > kKeptPlaces) chunks_.shrink_to_fit();
}

void ByteStore::advance(std::uint64_t to) {
  assert(to >= base_);
  base_ = std::max(base_, to);
  if (base_ >= high_) {
    reset(base_);
    return;
  }
  drop_below(chunk_of(base_));
  if (chunks_.empty()) first_chunk_ = chunk_of(base_);
}

void ByteStore::reset(std::uint64_t base) {
  drop_below(first_chunk_ + chunks_.size());
  base_ = high_ = base;
  first_chunk_ = chunk_of(base);
}

}  // namespace urnic
