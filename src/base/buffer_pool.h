// Scratch memory for the streams of one device: blocks whose size is a power of two. An idle stream
// returns its block, so that an idle connection owns none (P7). Blocks are cached here, so that a
// busy stream does not allocate (D3). Owned by one engine; not thread safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace urnic {

class BufferPool {
 public:
  static constexpr unsigned kMinShift = 12;  // 4 KiB
  static constexpr unsigned kMaxShift = 26;  // 64 MiB

  // `cache_limit`: bytes kept for reuse; further returned blocks are freed.
  explicit BufferPool(std::size_t cache_limit = 32u << 20) : cache_limit_(cache_limit) {}
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // 1 << shift bytes, aligned to 64; contents undefined.
  std::uint8_t* take(unsigned shift);
  void give(std::uint8_t* block, unsigned shift);

  std::size_t in_use() const { return in_use_; }  // bytes taken and not returned
  std::size_t cached() const { return cached_; }

 private:
  std::array<std::vector<std::uint8_t*>, kMaxShift - kMinShift + 1> free_;
  std::size_t cache_limit_;
  std::size_t cached_ = 0;
  std::size_t in_use_ = 0;
};

}  // namespace urnic
