#include "ddp_rdma/allocations.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/allocator.h"

namespace urnic::ddp::test {

std::uint64_t allocations() {
  return testing::allocations();
}

TEST(Allocations, AreCounted) {
  const std::uint64_t before = allocations();
  auto p = std::make_unique<std::uint64_t>(before);
  EXPECT_EQ(allocations(), *p + 1);
}

}  // namespace urnic::ddp::test
