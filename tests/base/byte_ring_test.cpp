#include "base/byte_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "base/rng.h"

namespace urnic {
namespace {

std::vector<std::uint8_t> join(const TwoViews& v) {
  std::vector<std::uint8_t> out(v.first.begin(), v.first.end());
  out.insert(out.end(), v.second.begin(), v.second.end());
  return out;
}

TEST(ByteRing, AcceptsExactlyItsCapacity) {
  ByteRing r(10000);
  const std::vector<std::uint8_t> data(12000, 7);
  EXPECT_EQ(r.append(data), 10000u);
  EXPECT_EQ(r.room(), 0u);
  EXPECT_EQ(r.append(data), 0u);
  r.release_to(100);
  EXPECT_EQ(r.append(data), 100u);
  EXPECT_EQ(r.end(), 10100u);
}

TEST(ByteRing, OwnsNoMemoryWhileNotUsed) {
  ByteRing r(1 << 20);
  EXPECT_EQ(r.memory(), 0u);
  const std::uint8_t byte[] = {1};
  r.append(byte);
  EXPECT_LE(r.memory(), 4096u);
  r.release_memory();
  EXPECT_GT(r.memory(), 0u) << "it holds a byte";
  r.release_to(r.end());
  r.release_memory();
  EXPECT_EQ(r.memory(), 0u);
  EXPECT_EQ(r.append(byte), 1u);
  EXPECT_EQ(join(r.view(1, 10)), (std::vector<std::uint8_t>{1}));
}

TEST(ByteRing, OffsetsOutsideAreHarmless) {
  ByteRing r(100, 1000);
  const std::vector<std::uint8_t> data(50, 1);
  r.append(data);
  EXPECT_EQ(r.view(999, 10).size(), 0u);
  EXPECT_EQ(r.view(1050, 10).size(), 0u);
  EXPECT_EQ(r.view(1040, 1000).size(), 10u);
  r.release_to(5);
  EXPECT_EQ(r.begin(), 1000u);
  r.release_to(5000);
  EXPECT_EQ(r.begin(), 1050u);
  EXPECT_TRUE(r.empty());
}

TEST(ByteRing, ACapacityBelowTheStoredBytesLeavesNoRoom) {
  ByteRing r(100);
  const std::vector<std::uint8_t> data(80, 1);
  r.append(data);
  r.set_capacity(50);
  EXPECT_EQ(r.room(), 0u);
  EXPECT_EQ(r.append(data), 0u);
  EXPECT_EQ(r.size(), 80u);
  r.release_to(60);
  EXPECT_EQ(r.room(), 30u);
}

TEST(ByteRing, BehavesLikeADequeUnderRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const std::size_t capacity = rng.between(1, 20000);
    const std::uint64_t start = rng.chance(0.5) ? rng.next() >> 8 : 0;
    ByteRing r(capacity, start);
    std::deque<std::uint8_t> model;
    std::uint64_t begin = start;
    for (int step = 0; step < 400; ++step) {
      switch (rng.below(4)) {
        case 0:
        case 1: {
          std::vector<std::uint8_t> data(rng.below(6000));
          for (auto& b : data) b = static_cast<std::uint8_t>(rng.next());
          const std::size_t n = r.append(data);
          ASSERT_EQ(n, std::min(data.size(), capacity - model.size()));
          model.insert(model.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(n));
          break;
        }
        case 2: {
          const std::uint64_t n = rng.below(model.size() + 1);
          begin += n;
          r.release_to(begin);
          model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(n));
          if (rng.chance(0.2)) r.release_memory();
          break;
        }
        default: {
          const std::size_t skip = rng.below(model.size() + 1), n = rng.below(5000);
          const auto from = model.begin() + static_cast<std::ptrdiff_t>(skip);
          const auto want = std::vector<std::uint8_t>(
              from, from + static_cast<std::ptrdiff_t>(std::min(n, model.size() - skip)));
          ASSERT_EQ(join(r.view(begin + skip, n)), want);
          std::vector<std::uint8_t> copied(n);
          copied.resize(r.copy(begin + skip, copied));
          ASSERT_EQ(copied, want);
        }
      }
      ASSERT_EQ(r.begin(), begin);
      ASSERT_EQ(r.size(), model.size());
      ASSERT_EQ(r.room(), capacity - model.size());
    }
  }
}

}  // namespace
}  // namespace urnic
