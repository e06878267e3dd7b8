#include "ddp_rdma/read_queue.h"

#include <gtest/gtest.h>

namespace urnic::ddp {
namespace {

ReadRequest request(std::uint32_t n) {
  return {n, n + 1, n + 2, n + 3, n + 4};
}

// proves: R-89
TEST(ReadQueue, RequestThreeIsPlacedWhileTwoIsMissing) {
  BufferPool pool;
  ReadQueue q(&pool);
  q.set_limit(4);
  q.place(1, request(1));
  q.place(3, request(3));
  ASSERT_NE(q.to_deliver(), nullptr);
  q.announce();
  EXPECT_EQ(q.to_deliver(), nullptr) << "request 2 has not come";
  EXPECT_EQ(q.ready(), 1u);
  q.place(2, request(2));
  q.announce();
  ASSERT_NE(q.to_deliver(), nullptr);
  EXPECT_EQ(q.to_deliver()->sink_stag, 3u);
  EXPECT_EQ(q.request(2).source_to, 6u);
}

// proves: R-90
TEST(ReadQueue, CapacityIsTheNegotiatedMaximum) {
  BufferPool pool;
  ReadQueue q(&pool);
  q.set_limit(3);  // not a power of two
  EXPECT_FALSE(q.has_room(0));
  EXPECT_TRUE(q.has_room(3));
  EXPECT_FALSE(q.has_room(4));
  for (std::uint32_t m = 1; m <= 3; ++m) {
    q.place(m, request(m));
    q.announce();
    EXPECT_FALSE(q.has_room(m)) << "delivered";
  }
  EXPECT_FALSE(q.has_room(4)) << "three are unanswered";
  EXPECT_EQ(q.to_deliver(), nullptr);
  q.start_response();
  EXPECT_FALSE(q.has_room(4)) << "sent is not acknowledged";
  q.finish_oldest();
  EXPECT_TRUE(q.has_room(4));
  EXPECT_FALSE(q.has_room(5));
}

TEST(ReadQueue, PlacingTwiceEqualsPlacingOnce) {
  BufferPool pool;
  ReadQueue q(&pool);
  q.set_limit(4);
  q.place(1, request(1));
  q.place(1, request(1));
  q.announce();
  q.start_response();
  q.finish_oldest();
  EXPECT_TRUE(q.empty());
}

TEST(ReadQueue, OwnsNothingWhenEmpty_P7) {
  BufferPool pool;
  ReadQueue q(&pool);
  q.set_limit(128);
  EXPECT_EQ(pool.in_use(), 0u);
  for (std::uint32_t m = 1; m <= 20; ++m) {
    q.place(m, request(m));
    EXPECT_GT(pool.in_use(), 0u);
    q.announce();
    q.start_response();
    q.finish_oldest();
    EXPECT_EQ(pool.in_use(), 0u);
  }
}

// proves: E-14
TEST(ReadQueue, WorksAcrossTheWrapAroundOfTheMsn) {
  BufferPool pool;
  ReadQueue q(&pool, 0xFFFFFFF0);
  q.set_limit(3);
  std::uint32_t msn = 0xFFFFFFF0;
  for (int i = 0; i < 50; ++i) {
    // Out of order within the window.
    q.place(msn + 2, request(msn + 2));
    q.place(msn + 1, request(msn + 1));
    EXPECT_EQ(q.to_deliver(), nullptr);
    q.place(msn, request(msn));
    for (std::uint32_t k = 0; k < 3; ++k) {
      ASSERT_NE(q.to_deliver(), nullptr);
      EXPECT_EQ(q.to_deliver()->sink_stag, msn + k);
      q.announce();
    }
    for (std::uint32_t k = 0; k < 3; ++k) {
      EXPECT_EQ(q.next_response(), msn + k);
      q.start_response();
      q.finish_oldest();
    }
    msn += 3;
  }
}

}  // namespace
}  // namespace urnic::ddp
