#include "verbs/completion_queue.h"

#include <gtest/gtest.h>

namespace urnic::verbs {
namespace {

Cqe cqe(std::uint64_t id, bool solicited = false, verbs::Status status = verbs::Status::Success) {
  Cqe c;
  c.completion.wr_id = id;
  c.completion.solicited = solicited;
  c.completion.status = status;
  return c;
}

TEST(CompletionQueue, PollsInOrderOfPush) {
  CompletionQueue cq(8);
  for (std::uint64_t i = 0; i < 8; ++i) cq.push(cqe(i));
  Cqe out[16];
  ASSERT_EQ(cq.poll(out), 8);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(out[i].completion.wr_id, i);
  EXPECT_EQ(cq.poll(out), 0);
}

TEST(CompletionQueue, OverrunIsReportedAfterTheCompletionsThatFitted) {
  CompletionQueue cq(2);
  cq.push(cqe(1));
  cq.push(cqe(2));
  EXPECT_FALSE(cq.overrun());
  cq.push(cqe(3));
  EXPECT_TRUE(cq.overrun());
  Cqe out[4];
  EXPECT_EQ(cq.poll(out), 2);
  EXPECT_EQ(cq.poll(out), -1);
}

TEST(CompletionQueue, NotifiesOncePerArm) {
  CompletionQueue cq(8);
  EXPECT_EQ(cq.push(cqe(1)), CompletionQueue::Notify::No);
  cq.arm(false);
  EXPECT_EQ(cq.push(cqe(2)), CompletionQueue::Notify::Yes);
  EXPECT_EQ(cq.push(cqe(3)), CompletionQueue::Notify::No);
}

TEST(CompletionQueue, SolicitedArmWaitsForSolicitedOrError) {
  CompletionQueue cq(8);
  cq.arm(true);
  EXPECT_EQ(cq.push(cqe(1)), CompletionQueue::Notify::No);
  EXPECT_EQ(cq.push(cqe(2, true)), CompletionQueue::Notify::Yes);
  cq.arm(true);
  EXPECT_EQ(cq.push(cqe(3, false, verbs::Status::Flushed)), CompletionQueue::Notify::Yes);
  cq.arm(false);
  cq.arm(true);  // the earlier request for any completion stays
  EXPECT_EQ(cq.push(cqe(4)), CompletionQueue::Notify::Yes);
}

}  // namespace
}  // namespace urnic::verbs
