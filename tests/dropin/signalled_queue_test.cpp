// A queue of values with a descriptor on which a program sleeps.
#include "dropin/signalled_queue.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace urnic::dropin {
namespace {

TEST(SignalledQueueTest, KeepLastKeepsTheNewestOfOneKind) {
  SignalledQueue<int> queue;
  const auto is_even = [](int v) { return v % 2 == 0; };
  queue.push(1);
  for (int i = 0; i < 1000; ++i) {
    queue.push(2 * i);
    queue.keep_last(3, is_even);
  }
  queue.push(3);
  for (const int value : {1, 1994, 1996, 1998, 3}) {
    pollfd p{queue.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&p, 1, 0), 1) << value;
    int got = 0;
    ASSERT_TRUE(queue.take(&got));
    EXPECT_EQ(got, value);
  }
  pollfd p{queue.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 0), 0) << "readable exactly while there are some";
  queue.push(4);
  EXPECT_EQ(poll(&p, 1, 0), 1);
}

// A child of a fork shares the descriptor with its parent and does not touch it until the parent
// has ended; then every count that the parent left in it must be removed.
TEST(SignalledQueueTest, CountsThatAParentLeftAreRemovedWhenItHasEnded) {
  SignalledQueue<int> queue;
  for (int i = 0; i < 3; ++i) queue.push(i);
  const auto readable = [&] {
    pollfd p{queue.fd(), POLLIN, 0};
    return poll(&p, 1, 0) == 1;
  };
  ++generation;
  EXPECT_EQ(queue.take_if([](int) { return true; }).size(), 3u);
  EXPECT_TRUE(readable()) << "it is the parent's";
  queue.take_over();
  EXPECT_FALSE(readable());
  queue.push(7);
  EXPECT_TRUE(readable());
  int got = 0;
  EXPECT_TRUE(queue.take(&got));
  EXPECT_FALSE(readable());
  --generation;
}

}  // namespace
}  // namespace urnic::dropin
