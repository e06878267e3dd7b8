#include "verbs/receive_queue.h"

#include <gtest/gtest.h>

#include <array>

namespace urnic::verbs {
namespace {

using Post = ReceiveQueue::Post;

TEST(ReceiveQueue, HoldsItsLimitAndNoMore) {
  ReceiveQueue q(3, 2, 1);  // a limit that is not a power of two
  const std::array<Sge, 3> sges{{{1, 10, 5}, {2, 20, 6}, {3, 30, 7}}};
  EXPECT_EQ(q.post({1, sges}), Post::TooManySges);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(q.post({i, std::span(sges).first(2)}), Post::Ok);
  EXPECT_EQ(q.post({9, {}}), Post::Full);
  EXPECT_EQ(q.posted(), 3u);
  q.pop();
  EXPECT_EQ(q.post({9, {}}), Post::Ok);
  EXPECT_EQ(q.post({9, {}}), Post::Full);
}

// proves: R-88
TEST(ReceiveQueue, TheIndexSelectsTheWqe) {
  ReceiveQueue q(8, 2, 1);
  for (std::uint32_t i = 0; i < 5; ++i) {
    const std::array<Sge, 2> sges{{{i, 10 + i, 1}, {i, 5, 2}}};
    ASSERT_EQ(q.post({100 + i, sges}), Post::Ok);
  }
  EXPECT_FALSE(q.has(0));
  EXPECT_TRUE(q.has(1));
  EXPECT_TRUE(q.has(5));
  EXPECT_FALSE(q.has(6));
  EXPECT_EQ(q.wqe(4).wr_id, 103u);
  EXPECT_EQ(q.wqe(4).capacity, 18u);
  EXPECT_EQ(q.sges(4)[0].length, 13u);
  q.pop();
  EXPECT_FALSE(q.has(1));
}

// proves: E-14
TEST(ReceiveQueue, TheIndexMayWrapAround) {
  ReceiveQueue q(5, 1, 0xFFFFFFF0);
  std::uint32_t index = 0xFFFFFFF0, posted = index;
  for (int i = 0; i < 64; ++i) {
    while (q.posted() < 5) {
      const Sge sge{posted, posted & 0xff, 1};
      ASSERT_EQ(q.post({posted, {&sge, 1}}), Post::Ok);
      ++posted;
    }
    for (std::uint32_t k = 0; k < 5; ++k) {
      ASSERT_TRUE(q.has(index + k));
      ASSERT_EQ(q.wqe(index + k).wr_id, index + k);
      ASSERT_EQ(q.sges(index + k)[0].addr, index + k);
    }
    ASSERT_FALSE(q.has(index - 1));
    ASSERT_FALSE(q.has(index + 5));
    q.pop();
    ++index;
  }
}

TEST(ReceiveQueue, ZeroWorkRequestsIsALegalSize) {
  ReceiveQueue q(0, 1, 1);
  EXPECT_EQ(q.post({1, {}}), Post::Full);
  EXPECT_FALSE(q.has(1));
}

}  // namespace
}  // namespace urnic::verbs
