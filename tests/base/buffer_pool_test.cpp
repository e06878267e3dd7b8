#include "base/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstring>

namespace urnic {
namespace {

TEST(BufferPool, ReusesReturnedBlocks) {
  BufferPool pool;
  std::uint8_t* a = pool.take(12);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0u);
  std::memset(a, 1, 4096);
  EXPECT_EQ(pool.in_use(), 4096u);
  pool.give(a, 12);
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(pool.cached(), 4096u);
  EXPECT_EQ(pool.take(12), a);
  EXPECT_EQ(pool.cached(), 0u);
  pool.give(a, 12);
}

TEST(BufferPool, SizesAreNotMixed) {
  BufferPool pool;
  std::uint8_t* a = pool.take(12);
  pool.give(a, 12);
  std::uint8_t* b = pool.take(17);
  std::memset(b, 1, 1 << 17);
  EXPECT_NE(a, b);
  EXPECT_EQ(pool.in_use(), std::size_t{1} << 17);
  pool.give(b, 17);
}

TEST(BufferPool, KeepsNoMoreThanItsLimit) {
  BufferPool pool(10000);
  std::uint8_t* blocks[5];
  for (auto& b : blocks) b = pool.take(12);
  for (auto* b : blocks) pool.give(b, 12);
  EXPECT_EQ(pool.cached(), 8192u);
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace urnic
