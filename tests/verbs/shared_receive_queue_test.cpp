// Receives shared by queue pairs: a bound receive belongs to one of them until freed, and none is
// lost.
#include "verbs/shared_receive_queue.h"

#include <gtest/gtest.h>

#include "verbs/completion_queue.h"
#include "verbs/receive_queue.h"

namespace urnic::verbs {
namespace {

using Post = SharedReceiveQueue::Post;

struct SharedReceiveRoom : ::testing::Test {
  void fill() {
    while (shared.post({1, {}}) == Post::Ok) {
    }
  }
  // The number of receives that can be posted.
  std::uint32_t room() {
    std::uint32_t n = 0;
    while (shared.post({1, {}}) == Post::Ok) ++n;
    return n;
  }
  BufferPool pool;
  SharedReceiveQueue shared{1, 4, 1};
};

// proves: E-15
TEST_F(SharedReceiveRoom, ADeliveredReceiveIsFreeAgain) {
  ReceiveQueue q(&shared, &pool, 1);
  fill();
  q.claim(1);
  EXPECT_EQ(room(), 0u);
  q.pop();
  EXPECT_EQ(room(), 1u);
}

// proves: E-15
TEST_F(SharedReceiveRoom, AResetFreesBoundReceives) {
  ReceiveQueue q(&shared, &pool, 1);
  fill();
  q.claim(3);
  EXPECT_EQ(q.posted(), 3u);
  q.reset(1);
  EXPECT_EQ(room(), 3u);
}

// A completion that will not be polled, because its queue pair is reset.
// proves: E-15
TEST_F(SharedReceiveRoom, ADiscardedCompletionFreesItsReceive) {
  ReceiveQueue q(&shared, &pool, 1);
  fill();
  CompletionQueue cq(8);
  for (std::uint32_t index = 1; index <= 2; ++index) {
    q.claim(index);
    const std::uint32_t position = q.position(index);
    q.store()->lend(position);
    q.pop(true);
    cq.push({.store = q.store(), .first = position, .count = 1}, index);
  }
  EXPECT_EQ(room(), 0u);
  cq.forget(2);
  EXPECT_EQ(room(), 1u);
  Cqe left[4];
  EXPECT_EQ(cq.poll(left), 1);
  EXPECT_EQ(room(), 1u);
}

// proves: E-15
TEST_F(SharedReceiveRoom, CountsItsUsers) {
  {
    ReceiveQueue one(&shared, &pool, 1), other(&shared, &pool, 1);
    EXPECT_EQ(shared.users, 2u);
  }
  EXPECT_EQ(shared.users, 0u);
}

// proves: E-15
TEST_F(SharedReceiveRoom, TheLimitEventIsReportedOnce) {
  ReceiveQueue q(&shared, &pool, 1);
  fill();
  shared.set_limit(4);
  EXPECT_FALSE(shared.take_limit_event()) << "not fewer";
  q.claim(1);
  EXPECT_TRUE(shared.take_limit_event());
  EXPECT_EQ(shared.limit(), 0u);
  EXPECT_FALSE(shared.take_limit_event()) << "once";
}

}  // namespace
}  // namespace urnic::verbs
