// A bounded FIFO of bytes addressed by absolute stream offset. It is the send buffer of a byte
// stream: unacknowledged bytes can be read repeatedly.
//
//   begin()                                   end()
//      |  stored, readable by offset            |  room()
//
// begin() <= end() <= begin() + capacity(). Memory doubles as needed up to the capacity. It is
// freed when the ring is empty and release_memory() is called. If the ring is full (or memory runs
// out), append accepts fewer bytes than offered. Not thread safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "base/bytes.h"

namespace urnic {

// Consecutive bytes of a stream in one or two pieces of memory; `second` is empty if `first` is.
struct TwoViews {
  ByteView first;
  ByteView second;
  std::size_t size() const { return first.size() + second.size(); }
};

class ByteRing {
 public:
  // `capacity` is exact: the largest number of stored bytes. `start`: offset of the first byte.
  explicit ByteRing(std::size_t capacity, std::uint64_t start = 0)
      : capacity_(capacity), begin_(start), end_(start) {}
  ByteRing(ByteRing&&) noexcept = default;
  ByteRing& operator=(ByteRing&&) noexcept = default;

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  bool empty() const { return begin_ == end_; }
  std::size_t capacity() const { return capacity_; }
  std::size_t room() const { return size() < capacity_ ? capacity_ - size() : 0; }
  std::size_t memory() const { return allocated_; }

  // Stored bytes remain, even if there are more than the capacity; then there is no room until
  // enough are released.
  void set_capacity(std::size_t capacity) { capacity_ = capacity; }

  // Appends as many of the first bytes as fit; returns the number.
  std::size_t append(ByteView bytes) {
    std::size_t n = std::min(bytes.size(), room());
    if (size() + n > allocated_ && !grow(size() + n)) n = allocated_ - size();
    if (n == 0) return 0;
    const std::size_t at = static_cast<std::size_t>(end_) & (allocated_ - 1);
    const std::size_t until_wrap = std::min(n, allocated_ - at);
    std::memcpy(data_.get() + at, bytes.data(), until_wrap);
    if (n > until_wrap) std::memcpy(data_.get(), bytes.data() + until_wrap, n - until_wrap);
    end_ += n;
    return n;
  }

  // The bytes [offset, offset + length), limited to the stored ones. Valid until the next append or
  // release.
  TwoViews view(std::uint64_t offset, std::size_t length) const {
    if (offset < begin_ || offset >= end_ || length == 0) return {};
    length = static_cast<std::size_t>(std::min<std::uint64_t>(length, end_ - offset));
    const std::size_t at = static_cast<std::size_t>(offset) & (allocated_ - 1);
    const std::size_t until_wrap = std::min(length, allocated_ - at);
    return {{data_.get() + at, until_wrap}, {data_.get(), length - until_wrap}};
  }
  // Copies them into `dst`; returns the number of bytes.
  std::size_t copy(std::uint64_t offset, MutBytes dst) const {
    const TwoViews v = view(offset, dst.size());
    if (!v.first.empty()) std::memcpy(dst.data(), v.first.data(), v.first.size());
    if (!v.second.empty()) {
      std::memcpy(dst.data() + v.first.size(), v.second.data(), v.second.size());
    }
    return v.size();
  }

  // Releases the bytes below `offset`. An offset outside [begin, end] is clamped.
  void release_to(std::uint64_t offset) { begin_ = std::clamp(offset, begin_, end_); }
  // Discards everything and continues at `start`; keeps the memory.
  void reset(std::uint64_t start) { begin_ = end_ = start; }
  // Frees the memory if the ring is empty.
  void release_memory() {
    if (!empty()) return;
    data_.reset();
    allocated_ = 0;
  }

 private:
  static constexpr std::size_t kFirst = 2048;

  // Allocates a power of two of at least `need` bytes. A mask turns an offset into a place, so
  // stored bytes move to their places under the new mask. False if there is no memory.
  bool grow(std::size_t need) {
    const std::size_t allocate = std::bit_ceil(std::max(need, kFirst));
    std::unique_ptr<std::uint8_t[]> data(new (std::nothrow) std::uint8_t[allocate]);
    if (data == nullptr) return false;
    for (std::uint64_t offset = begin_; offset < end_;) {
      const std::size_t from = static_cast<std::size_t>(offset) & (allocated_ - 1);
      const std::size_t to = static_cast<std::size_t>(offset) & (allocate - 1);
      const auto n = static_cast<std::size_t>(
          std::min<std::uint64_t>({end_ - offset, allocated_ - from, allocate - to}));
      std::memcpy(data.get() + to, data_.get() + from, n);
      offset += n;
    }
    data_ = std::move(data);
    allocated_ = allocate;
    return true;
  }

  std::unique_ptr<std::uint8_t[]> data_;
  std::size_t allocated_ = 0;  // 0 or a power of two
  std::size_t capacity_;
  std::uint64_t begin_;
  std::uint64_t end_;
};

}  // namespace urnic
