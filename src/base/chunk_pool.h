// Equal pieces of memory that many buffers of one engine share, with a total limit (E-11).
//
// take() returns nullptr at the limit or if the system has no memory; callers must handle that. Up
// to `keep` returned chunks are kept for reuse. The contents of a chunk are those that its last
// user left. All chunks must be returned before the pool is destroyed. Not thread safe: one pool
// per engine.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <new>

namespace urnic {

class ChunkPool {
 public:
  static constexpr std::size_t kMinChunk = 4096;
  static constexpr std::size_t kMaxChunk = 65536;

  // `chunk_size`: a power of two in [kMinChunk, kMaxChunk]. `limit`: chunks in use at once. `keep`:
  // free chunks not returned to the system.
  ChunkPool(std::size_t chunk_size, std::size_t limit, std::size_t keep)
      : chunk_size_(chunk_size), limit_(limit), keep_(keep) {
    assert(std::has_single_bit(chunk_size) && chunk_size >= kMinChunk && chunk_size <= kMaxChunk);
  }
  ~ChunkPool() {
    assert(in_use_ == 0);
    trim(0);
  }
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  std::uint8_t* take() {
    if (in_use_ >= limit_) {
      ++refused_;
      return nullptr;
    }
    void* chunk = free_;
    if (chunk != nullptr) {
      free_ = free_->next;
      --free_count_;
    } else {
      chunk = ::operator new (chunk_size_, std::align_val_t{64}, std::nothrow);
      if (chunk == nullptr) {
        ++refused_;
        return nullptr;
      }
    }
    ++in_use_;
    if (in_use_ > peak_) peak_ = in_use_;
    return static_cast<std::uint8_t*>(chunk);
  }
  // `chunk` must come from take() of this pool.
  void give(std::uint8_t* chunk) {
    assert(in_use_ > 0 && chunk != nullptr);
    --in_use_;
    if (free_count_ >= keep_) {
      destroy(chunk);
      return;
    }
    free_ = ::new (static_cast<void*>(chunk)) Free{free_};
    ++free_count_;
  }
  // Returns free chunks to the system until at most `keep` remain.
  void trim(std::size_t keep) {
    while (free_count_ > keep) {
      Free* chunk = free_;
      free_ = chunk->next;
      --free_count_;
      destroy(chunk);
    }
  }

  std::size_t chunk_size() const { return chunk_size_; }
  std::size_t limit() const { return limit_; }
  // Chunks in use remain, even if there are more than the limit.
  void set_limit(std::size_t limit) { limit_ = limit; }
  std::size_t in_use() const { return in_use_; }
  std::size_t available() const { return in_use_ < limit_ ? limit_ - in_use_ : 0; }
  std::size_t peak() const { return peak_; }          // maximum of in_use()
  std::uint64_t refused() const { return refused_; }  // failed calls of take()
  std::size_t kept() const { return free_count_; }

 private:
  struct Free {
    Free* next;
  };
  static void destroy(void* chunk) { ::operator delete (chunk, std::align_val_t{64}); }

  std::size_t chunk_size_;
  std::size_t limit_;
  std::size_t keep_;
  Free* free_ = nullptr;
  std::size_t free_count_ = 0;
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace urnic
