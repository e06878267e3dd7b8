#include "reassembly/buffer.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace urnic::reassembly {
namespace {

// A dynamic threshold: if n connections take all they can of a pool of P bytes, each holds P / (n +
// kShare), and the next one finds kShare times as much left.
constexpr std::uint64_t kShare = 4;

// Segments are copied to and from the beginning of a chunk, so chunks start at a cache line.
constexpr std::align_val_t kLine{64};

void free_chunk(std::uint8_t* chunk) {
  ::operator delete(chunk, kLine);
}

}  // namespace

Pool::Pool(std::uint64_t total_limit) : limit_(total_limit) {
  free_.reserve(kKeep);
}

Pool::~Pool() {
  assert(used_ == 0 && "a buffer outlives its pool");
  for (std::uint8_t* chunk : free_) free_chunk(chunk);
}

std::uint8_t* Pool::take(bool guaranteed) {
  if (!guaranteed && available() < kChunk) return nullptr;
  std::uint8_t* chunk = nullptr;
  if (!free_.empty()) {
    chunk = free_.back();  // the one returned last is probably still in the cache
    free_.pop_back();
  } else {
    chunk = static_cast<std::uint8_t*>(::operator new(kChunk, kLine, std::nothrow));
  }
  if (chunk != nullptr) used_ += kChunk;
  return chunk;
}

void Pool::give(std::uint8_t* chunk) {
  assert(used_ >= kChunk);
  used_ -= kChunk;
  if (free_.size() < kKeep) {
    free_.push_back(chunk);
  } else {
    free_chunk(chunk);
  }
}

std::uint64_t Pool::in_use() const {
  return used_;
}

std::uint64_t Pool::available() const {
  return used_ < limit_ ? limit_ - used_ : 0;
}

Buffer::Buffer(Pool* pool, std::uint32_t capacity)
    : pool_(pool), capacity_(std::max(capacity, kGuarantee)) {}

Buffer::~Buffer() {
  release_all();
}

std::uint8_t* Buffer::take_chunk() {
  std::uint8_t* chunk = pool_->take(true);
  if (chunk != nullptr) held_ += Pool::kChunk;
  return chunk;
}

void Buffer::give_chunk(std::uint8_t* chunk) {
  if (chunk == nullptr) return;
  pool_->give(chunk);
  held_ -= Pool::kChunk;
}

void Buffer::release_all() {
  for (std::uint8_t* chunk : chunks_) give_chunk(chunk);
  chunks_.clear();
}

void Buffer::reset(StreamOffset at) {
  release_all();
  // A connection that becomes FAST and stays so should not keep an index sized for its worst
  // moment.
  if (chunks_.capacity() > 8) std::vector<std::uint8_t*>().swap(chunks_);
  base_ = read_ = high_ = at;
}

bool Buffer::can_store(StreamOffset begin, std::uint32_t len, bool in_order) const {
  if (begin < read_ || begin - read_ > capacity_) return false;
  const std::uint64_t end = begin - read_ + len;
  if (end > capacity_) return false;
  const bool guaranteed = in_order && end <= kGuarantee;
  if (len == 0 || guaranteed) return true;
  std::uint64_t missing = 0;
  const std::size_t last = chunk_of(begin + (len - 1));
  for (std::size_t i = chunk_of(begin); i <= last; ++i) missing += absent(i) ? 1 : 0;
  missing *= Pool::kChunk;
  if (missing > pool_->available()) return false;
  // A connection that already holds much out of order leaves room for others: it may hold up to
  // 1/kShare of what is left.
  const std::uint64_t held = held_ + missing;
  return in_order || held <= kGuarantee || held <= pool_->available() / kShare;
}

bool Buffer::store(StreamOffset begin, ByteView bytes, bool in_order) {
  if (bytes.size() > capacity_) return false;
  const auto len = static_cast<std::uint32_t>(bytes.size());
  // The common case of a stream read as fast as it arrives: the next bytes go into an empty buffer.
  // One chunk is within the guarantee.
  if (in_order && chunks_.empty() && begin == base_ && begin == read_ && len - 1 < Pool::kChunk) {
    chunks_.push_back(nullptr);  // make room in the index first: if that failed later, the chunk
                                 // would leak
    std::uint8_t* chunk = take_chunk();
    if (chunk == nullptr) {
      chunks_.pop_back();
      return false;
    }
    chunks_.back() = chunk;
    std::memcpy(chunk, bytes.data(), len);
    high_ = begin + len;
    return true;
  }
  if (!can_store(begin, len, in_order)) return false;
  if (len == 0) return true;
  const std::size_t first = chunk_of(begin), last = chunk_of(begin + (len - 1));
  if (last >= chunks_.size()) chunks_.resize(last + 1, nullptr);
  for (std::size_t i = first; i <= last; ++i) {
    if (chunks_[i] != nullptr) continue;
    // can_store() has decided; from here the pool can only fail on allocation.
    chunks_[i] = take_chunk();
    if (chunks_[i] == nullptr) {
      if (empty()) release_all();
      return false;
    }
  }
  std::uint64_t at = begin - base_;
  for (const std::uint8_t* p = bytes.data(); p != bytes.data() + len;) {
    const std::uint64_t in_chunk = at % Pool::kChunk;
    const auto n = std::min<std::uint64_t>(Pool::kChunk - in_chunk,
                                           static_cast<std::uint64_t>(bytes.data() + len - p));
    std::memcpy(chunks_[at / Pool::kChunk] + in_chunk, p, n);
    p += n;
    at += n;
  }
  high_ = std::max(high_, begin + len);
  return true;
}

std::uint8_t* Buffer::pass(ByteView fpdu) {
  assert(empty() && chunks_.empty());
  if (fpdu.size() > Pool::kChunk) return nullptr;
  std::uint8_t* chunk = pool_->take(true);
  if (chunk != nullptr) std::memcpy(chunk, fpdu.data(), fpdu.size());
  return chunk;
}

void Buffer::passed(std::uint8_t* fpdu, StreamOffset end) {
  pool_->give(fpdu);
  base_ = read_ = high_ = end;
}

ByteView Buffer::view(std::uint64_t skip, std::uint32_t max, StreamOffset in_order_end) const {
  const StreamOffset at = read_ + skip;
  // neither beyond what the caller says is in order nor beyond the last byte ever stored.
  const StreamOffset end = std::min({at + max, in_order_end, high_});
  if (at >= end) return {};
  const std::size_t chunk = chunk_of(at);
  if (absent(chunk)) return {};
  const std::uint64_t in_chunk = (at - base_) % Pool::kChunk;
  return {chunks_[chunk] + in_chunk, std::min<std::uint64_t>(end - at, Pool::kChunk - in_chunk)};
}

void Buffer::copy(std::uint64_t skip, std::uint32_t len, std::uint8_t* dst) const {
  while (len != 0) {
    const ByteView piece = view(skip, len, high_);
    if (piece.empty()) {
      // A caller that requests bytes it never stored must not get another connection's bytes
      //
      assert(false && "copy beyond what was stored");
      std::memset(dst, 0, len);
      return;
    }
    std::memcpy(dst, piece.data(), piece.size());
    dst += piece.size();
    skip += piece.size();
    len -= static_cast<std::uint32_t>(piece.size());
  }
}

void Buffer::consume(StreamOffset to) {
  if (to <= read_) return;
  read_ = to;
  if (empty()) {
    release_all();
    base_ = high_ = read_;
    return;
  }
  // Returns the chunks that lie completely below the read position.
  const std::size_t done = std::min<std::size_t>(chunk_of(read_), chunks_.size());
  if (done == 0) return;
  for (std::size_t i = 0; i < done; ++i) give_chunk(chunks_[i]);
  chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<std::ptrdiff_t>(done));
  base_ += done * std::uint64_t{Pool::kChunk};
}

std::uint64_t Buffer::room(StreamOffset in_order_end) const {
  const std::uint64_t held = in_order_end > read_ ? in_order_end - read_ : 0;
  const std::uint64_t by_capacity = capacity_ > held ? capacity_ - held : 0;
  const std::uint64_t by_guarantee = kGuarantee > held ? kGuarantee - held : 0;
  const std::uint64_t beyond = high_ > in_order_end ? high_ - in_order_end : 0;
  return std::min(by_capacity, std::max(by_guarantee, beyond + pool_->available()));
}

}  // namespace urnic::reassembly
