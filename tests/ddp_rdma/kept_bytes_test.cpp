#include "ddp_rdma/kept_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

#include "base/rng.h"

namespace urnic::ddp {
namespace {

struct Block {
  std::uint8_t* at;
  std::uint32_t len;
  std::uint8_t fill;
};

bool intact(const Block& b) {
  for (std::uint32_t i = 0; i < b.len; ++i) {
    if (b.at[i] != b.fill) return false;
  }
  return true;
}

TEST(KeptBytes, OwnsNothingWhenEmpty) {
  BufferPool pool;
  KeptBytes kept(&pool);
  EXPECT_EQ(pool.in_use(), 0u);
  std::uint8_t* a = kept.allocate(84);
  EXPECT_EQ(pool.in_use(), 4096u) << "a connection with a few bytes takes the smallest chunk";
  kept.free(a);
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(KeptBytes, HoldsTheLargestFpdu) {
  BufferPool pool;
  KeptBytes kept(&pool);
  Block b{kept.allocate(65548), 65548, 7};
  std::memset(b.at, b.fill, b.len);
  EXPECT_TRUE(intact(b));
  kept.free(b.at);
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(KeptBytes, BlocksKeepTheirBytesInAnyOrderOfFreeing) {
  const std::uint64_t seed = 4711;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  BufferPool pool;
  KeptBytes kept(&pool);
  std::deque<Block> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || rng.chance(live.size() < 60 ? 0.6 : 0.4)) {
      const auto len =
          static_cast<std::uint32_t>(rng.chance(0.9) ? rng.between(1, 300) : rng.between(1, 20000));
      Block b{kept.allocate(len), len, static_cast<std::uint8_t>(rng.next())};
      std::memset(b.at, b.fill, len);
      live.push_back(b);
    } else {
      // Mostly the oldest, in the order of acknowledgements.
      const std::size_t k = rng.chance(0.8) ? 0 : rng.below(live.size());
      ASSERT_TRUE(intact(live[k]));
      kept.free(live[k].at);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  for (const Block& b : live) {
    ASSERT_TRUE(intact(b));
    kept.free(b.at);
  }
  EXPECT_EQ(kept.chunks(), 0u);
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace urnic::ddp
