// Sinks of RDMA Reads: the keys by which a Read's responses are placed.
#include "ddp_rdma/read_sink.h"

#include <gtest/gtest.h>

#include <array>
#include <new>

#include "tests/support/allocator.h"

namespace urnic::ddp {
namespace {

TEST(ReadSinks, ReleasedSinksAreReusedWithTheirNewPieces) {
  verbs::MemoryTable keys(64);
  ReadSinks sinks(&keys);
  std::array<std::uint8_t, 32> memory{};
  const std::span<std::uint8_t> one[] = {memory};
  const std::span<std::uint8_t> two[] = {{memory.data(), 8}, {memory.data() + 16, 16}};
  const std::uint32_t first = sinks.open(1, one), second = sinks.open(2, two);
  ASSERT_NE(sinks.find(first), nullptr);
  EXPECT_EQ(sinks.find(first)->base, memory.data());
  EXPECT_EQ(sinks.find(first)->length, 32u);
  ASSERT_NE(sinks.find(second), nullptr);
  EXPECT_EQ(sinks.find(second)->base, nullptr);
  EXPECT_EQ(sinks.find(second)->length, 24u);
  sinks.release(second);
  sinks.release(first);
  EXPECT_EQ(sinks.find(first), nullptr);
  const std::uint32_t third = sinks.open(3, two), fourth = sinks.open(4, one);
  EXPECT_EQ(sinks.find(third)->stream, 3u);
  EXPECT_EQ(sinks.find(third)->length, 24u);
  EXPECT_EQ(sinks.find(fourth)->stream, 4u);
  EXPECT_EQ(sinks.find(fourth)->base, memory.data());
  EXPECT_EQ(keys.in_use(), 2u);
}

// Each allocation fails once: then there is either a sink with its key, or neither.
TEST(ReadSinks, WithoutMemoryNoKeyIsLeftReserved) {
  std::array<std::uint8_t, 32> memory{};
  const std::span<std::uint8_t> two[] = {{memory.data(), 8}, {memory.data() + 16, 16}};
  int failed = 0;
  for (std::uint64_t after = 0; after < 8; ++after) {
    verbs::MemoryTable keys(64);
    ReadSinks sinks(&keys);
    std::uint32_t key = 0;
    {
      const testing::NoMemory none(after);
      try {
        key = sinks.open(1, two);
      } catch (const std::bad_alloc&) {
        ++failed;
      }
    }
    EXPECT_EQ(keys.in_use(), key != 0 ? 1u : 0u) << after;
    key = sinks.open(1, two);
    ASSERT_NE(key, 0u);
    EXPECT_EQ(sinks.find(key)->length, 24u);
  }
  EXPECT_GE(failed, 3);
}

}  // namespace
}  // namespace urnic::ddp
