// Memory that a program registers, with guard areas on both sides that must not change. After
// deregistration the memory itself must not change either.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tests/fuzz/input.h"

namespace urnic::fuzz {

class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes)
      : bytes_(bytes), all_(std::make_unique<std::uint8_t[]>(bytes + 2 * kGuard)) {
    std::fill_n(all_.get(), bytes + 2 * kGuard, kCanary);
    for (std::size_t i = 0; i < bytes; ++i) data()[i] = untouched(i);
  }
  std::uint8_t* data() { return all_.get() + kGuard; }
  const std::uint8_t* data() const { return all_.get() + kGuard; }
  std::size_t size() const { return bytes_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data()); }

  // No request has named this memory as a destination yet, so it must not change.
  bool may_change = false;
  // A posted request names it as a destination. Access is decided when the request is executed, by
  // the rights that the region then has: they may be granted after posting.
  void name_to_write(bool has_right) {
    is_named_ = true;
    may_change = may_change || has_right;
  }
  // For a region that is registered again: inherits the destinations of `before`.
  void take_names(const GuardedMemory& before) { is_named_ = is_named_ || before.is_named_; }
  void change_rights(bool local_write, bool remote) {
    may_change = may_change || remote || (is_named_ && local_write);
  }
  // Not registered any more.
  void close() {
    std::fill_n(data(), bytes_, kClosed);
    is_closed_ = true;
  }
  void check() const {
    const auto all = [](const std::uint8_t* p, std::size_t n, std::uint8_t what) {
      return std::all_of(p, p + n, [what](std::uint8_t b) { return b == what; });
    };
    require(all(all_.get(), kGuard, kCanary) && all(data() + bytes_, kGuard, kCanary),
            "memory beside a region was written");
    require(!is_closed_ || all(data(), bytes_, kClosed),
            "memory was written that is not registered any more");
    if (is_closed_ || may_change) return;
    for (std::size_t i = 0; i < bytes_; ++i) {
      require(data()[i] == untouched(i), "memory was written that nobody gave away");
    }
  }

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr std::uint8_t kCanary = 0xcd, kClosed = 0xdd;
  static std::uint8_t untouched(std::size_t i) { return static_cast<std::uint8_t>(i * 11 + 3); }

  std::size_t bytes_;
  std::unique_ptr<std::uint8_t[]> all_;
  bool is_closed_ = false, is_named_ = false;
};

// Memory that was registered, kept as long as some operation might still write to it.
class Graveyard {
 public:
  void bury(std::unique_ptr<GuardedMemory> m) {
    m->check();
    m->close();
    graves_.push_back(std::move(m));
    if (graves_.size() <= kMost) return;
    graves_.front()->check();
    graves_.pop_front();
  }
  void check() const {
    for (const auto& m : graves_) m->check();
  }

 private:
  static constexpr std::size_t kMost = 32;
  std::deque<std::unique_ptr<GuardedMemory>> graves_;
};

}  // namespace urnic::fuzz
