#include "base/chunk_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "base/rng.h"

namespace urnic {
namespace {

TEST(ChunkPool, EndsAtItsLimit) {
  ChunkPool pool(4096, 3, 3);
  std::uint8_t* a = pool.take();
  std::uint8_t* b = pool.take();
  std::uint8_t* c = pool.take();
  ASSERT_TRUE(a != nullptr && b != nullptr && c != nullptr);
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_EQ(pool.refused(), 1u);
  EXPECT_EQ(pool.available(), 0u);
  pool.give(b);
  EXPECT_EQ(pool.take(), b) << "a kept chunk is used again";
  pool.give(a);
  pool.give(b);
  pool.give(c);
  EXPECT_EQ(pool.peak(), 3u);
}

TEST(ChunkPool, KeepsNoMoreFreeChunksThanAsked) {
  ChunkPool pool(4096, 10, 2);
  std::vector<std::uint8_t*> chunks;
  for (int i = 0; i < 10; ++i) chunks.push_back(pool.take());
  for (auto* c : chunks) pool.give(c);
  EXPECT_EQ(pool.kept(), 2u);
  pool.trim(0);
  EXPECT_EQ(pool.kept(), 0u);
}

TEST(ChunkPool, HandsOutEveryChunkToOneUserOnly) {
  Rng rng(1);
  ChunkPool pool(8192, 50, 20);
  std::set<std::uint8_t*> held;
  for (int step = 0; step < 20000; ++step) {
    if (rng.chance(0.5)) {
      std::uint8_t* c = pool.take();
      ASSERT_EQ(c == nullptr, held.size() == 50);
      if (c != nullptr) {
        ASSERT_TRUE(held.insert(c).second);
        std::memset(c, step & 0xff, 8192);
      }
    } else if (!held.empty()) {
      auto it = held.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(rng.below(held.size())));
      pool.give(*it);
      held.erase(it);
    }
    ASSERT_EQ(pool.in_use(), held.size());
  }
  for (auto* c : held) pool.give(c);
}

TEST(ChunkPool, ALoweredLimitTakesEffectAsChunksAreReturned) {
  ChunkPool pool(4096, 4, 4);
  std::vector<std::uint8_t*> chunks;
  for (int i = 0; i < 4; ++i) chunks.push_back(pool.take());
  pool.set_limit(2);
  EXPECT_EQ(pool.available(), 0u);
  EXPECT_EQ(pool.take(), nullptr);
  for (int i = 0; i < 3; ++i) {
    pool.give(chunks.back());
    chunks.pop_back();
  }
  EXPECT_EQ(pool.available(), 1u);
  chunks.push_back(pool.take());
  EXPECT_EQ(pool.take(), nullptr);
  for (auto* c : chunks) pool.give(c);
}

}  // namespace
}  // namespace urnic
