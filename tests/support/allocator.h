// The allocator of a test program: counts, and fails when it is told to. Linked as
// urnic_test_allocator, once for a program: it replaces operator new.
#pragma once

#include <cstdint>

namespace urnic::testing {

// How often this program has allocated memory with operator new.
std::uint64_t allocations();
// Bytes that are allocated now, as the allocator below rounds them.
std::uint64_t allocated_bytes();

// While it lives, allocations of this thread fail: the first `after` succeed, then `many` fail,
// then all succeed again. Not nested.
class NoMemory {
 public:
  static constexpr std::uint64_t kForEver = ~std::uint64_t{0};
  explicit NoMemory(std::uint64_t after, std::uint64_t many = 1);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  // Meanwhile nothing fails and nothing is counted.
  void pause();
  void resume();
  // How many allocations were asked for, and how many of them failed.
  std::uint64_t asked() const;
  std::uint64_t failed() const;
};

}  // namespace urnic::testing
