// The allocator of a test program: it counts allocations and can make them fail. Link it
// (urnic_test_allocator) once per program, because it replaces operator new.
#pragma once

#include <cstdint>

namespace urnic::testing {

// The number of allocations of this program with operator new.
std::uint64_t allocations();
// The number of currently allocated bytes, rounded by the allocator below.
std::uint64_t allocated_bytes();

// While this object exists, allocations of this thread fail: the first `after` succeed, then `many`
// fail, then all succeed again. Must not be nested.
class NoMemory {
 public:
  static constexpr std::uint64_t kForEver = ~std::uint64_t{0};
  explicit NoMemory(std::uint64_t after, std::uint64_t many = 1);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  // Between these calls nothing fails and nothing is counted.
  void pause();
  void resume();
  // The number of requested allocations, and how many of them failed.
  std::uint64_t asked() const;
  std::uint64_t failed() const;
};

}  // namespace urnic::testing
