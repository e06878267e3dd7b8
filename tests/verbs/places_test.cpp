#include "verbs/places.h"

#include <gtest/gtest.h>

#include "verbs/completion_queue.h"
#include "verbs/receive_queue.h"
#include "verbs/send_queue.h"

namespace urnic::verbs {
namespace {

constexpr std::uint32_t kMost = 4;

// A send queue as in a queue pair: requests that are done are reported if they need a completion.
struct Sends {
  Sends() { q.hold_places(); }
  bool post() { return q.post({}) == Post::Ok; }
  void finish(bool reported) {
    q.start();
    q.pop(reported);
    if (!reported) return;
    Cqe cqe;
    cqe.places = &q.places();
    cqe.position = q.head();
    cq.push(cqe);
  }
  int free() {  // and occupies them
    int n = 0;
    while (post()) ++n;
    return n;
  }
  void poll(std::size_t n) {
    Cqe out[kMost];
    ASSERT_EQ(cq.poll({out, n}), static_cast<int>(n));
  }
  CompletionQueue cq{16};
  SendQueue q{kMost, 1, 0, 16};
};

// proves: E-47
TEST(Places, AreOccupiedUntilTheCompletionIsPolled) {
  Sends s;
  EXPECT_EQ(s.free(), 4);
  s.finish(true);
  s.finish(true);
  EXPECT_EQ(s.free(), 0);
  s.poll(1);
  EXPECT_EQ(s.free(), 1);
  s.poll(1);
  EXPECT_EQ(s.free(), 1);
}

// proves: E-47
TEST(Places, AreFreedByALaterCompletion) {
  Sends s;
  EXPECT_EQ(s.free(), 4);
  s.finish(true);
  s.finish(false);
  s.finish(true);
  EXPECT_EQ(s.free(), 0);
  s.poll(1);
  EXPECT_EQ(s.free(), 1) << "not that of one without a completion behind it";
  s.poll(1);
  EXPECT_EQ(s.free(), 2);
}

TEST(Places, WithoutACompletionAreFreeWhenDone) {
  Sends s;
  EXPECT_EQ(s.free(), 4);
  s.finish(false);
  s.finish(false);
  EXPECT_EQ(s.free(), 2);
  s.finish(false);
  s.finish(true);  // free places stay free
  EXPECT_EQ(s.free(), 1);
  s.finish(false);
  EXPECT_EQ(s.free(), 0);
  s.poll(1);
  EXPECT_EQ(s.free(), 2);
}

// proves: E-47
TEST(Places, OfADestroyedQueueAreNotTouched) {
  Sends s;
  EXPECT_EQ(s.free(), 4);
  s.finish(true);
  s.finish(true);
  s.cq.leave(s.q.places());
  s.poll(2);
  EXPECT_FALSE(s.q.places().all_polled());
}

TEST(Places, AreAllFreeAfterAReset) {
  Sends s;
  EXPECT_EQ(s.free(), 4);
  s.finish(true);
  s.q.clear();
  EXPECT_EQ(s.free(), 4);
}

// proves: E-47
TEST(Places, OfReceivesAreFreedByBothKindsOfCompletion) {
  CompletionQueue cq(16);
  ReceiveQueue q(kMost, 1, 7);
  q.hold_places();
  const auto post = [&] { return q.post({}) == ReceiveQueue::Post::Ok; };
  for (std::uint32_t i = 0; i < kMost; ++i) ASSERT_TRUE(post());
  // One full completion, and two receives in one partial completion.
  Cqe full;
  q.pop();
  full.places = q.places();
  full.position = q.head();
  cq.push(full);
  const std::uint32_t first = q.head();
  for (std::uint32_t i = 0; i < 2; ++i) {
    q.store()->lend(q.position(q.head()));
    q.pop(true);
  }
  cq.push({q.store(), first, 2, false}, 1, q.places());
  EXPECT_FALSE(post());
  Cqe out[1];
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cq.poll(out), 1);
    EXPECT_TRUE(post()) << i;
    EXPECT_FALSE(post()) << i;
  }
}

}  // namespace
}  // namespace urnic::verbs
