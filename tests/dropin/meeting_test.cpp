// Connections without rdma_cm: two programs exchange address and number and move to RTR and RTS.
#include "dropin/meeting.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

namespace meeting {
namespace {

// The regions allow it, the queue pairs do not.
// proves: DI-2
TEST_F(MeetingTest, AccessNotAllowedByTheQueuePairIsRefused) {
  for (End* end : {&a_, &b_}) end->init(IBV_ACCESS_REMOTE_READ);
  ready(a_, b_);
  ready(b_, a_);
  ibv_qp_attr told;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(b_.qp, &told, IBV_QP_ACCESS_FLAGS, &init), 0);
  EXPECT_EQ(told.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_READ});
  ASSERT_EQ(a_.send(1, IBV_WR_RDMA_READ, &b_), 0);
  EXPECT_EQ(a_.next().status, IBV_WC_SUCCESS);
  std::strcpy(a_.memory, "written");
  ASSERT_EQ(a_.send(2, IBV_WR_RDMA_WRITE, &b_), 0);
  (void)a_.next();  // the kernel has it
  EXPECT_TRUE(urnic::test::soon([&] { return b_.state() != IBV_QPS_RTS; }));
  EXPECT_EQ(b_.state(), IBV_QPS_ERR);
  EXPECT_STREQ(b_.memory + 32, "");
}

// proves: DI-2
TEST_F(MeetingTest, AForbiddenReadFailsAtTheRequester) {
  for (End* end : {&a_, &b_}) end->init(IBV_ACCESS_REMOTE_WRITE);
  ready(a_, b_);
  ready(b_, a_);
  std::strcpy(a_.memory, "unread");
  ASSERT_EQ(a_.send(3, IBV_WR_RDMA_READ, &b_), 0);
  EXPECT_EQ(a_.next().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_STREQ(a_.memory, "unread");
}

// proves: DI-2
TEST_F(MeetingTest, AccessRightsMayBeSetWithTheMoveToRts) {
  ready(a_, b_);
  ASSERT_EQ(to_rtr(b_, a_.qp->qp_num), 0);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTS;
  a.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  ASSERT_EQ(ibv_modify_qp(b_.qp, &a, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
  be_terminated();
}

// proves: DI-12
TEST_F(MeetingTest, DataGoesBothWaysWhicheverEndIsReadyFirst) {
  for (const bool active_first : {true, false}) {
    End& first = active_first ? active() : passive();
    End& second = active_first ? passive() : active();
    ready(first, second);
    ready(second, first);
    one_way(first, second);
    one_way(second, first);
    std::strcpy(first.memory, "written");
    ASSERT_EQ(first.send(3, IBV_WR_RDMA_WRITE, &second), 0);
    EXPECT_EQ(first.next().status, IBV_WC_SUCCESS);
    std::memset(first.memory, 0, 16);
    ASSERT_EQ(first.send(4, IBV_WR_RDMA_READ, &second), 0);
    EXPECT_EQ(first.next().status, IBV_WC_SUCCESS);
    EXPECT_STREQ(first.memory, "written");
    // Back to RESET, and once more in the other order.
    for (const End* end : {&first, &second}) {
      end->reset();
      end->init();
    }
  }
}

// proves: DI-12
TEST_F(MeetingTest, SendsPostedBeforeThePeerConnectsAreKept) {
  for (End* early : {&active(), &passive()}) {
    End& late = early == &a_ ? b_ : a_;
    std::strcpy(early->memory, "early");
    ASSERT_EQ(to_rtr(*early, late.qp->qp_num), 0);
    EXPECT_EQ(early->send(1), EINVAL);  // not allowed before RTS
    ASSERT_EQ(to_rts(*early, 0), 0);
    ASSERT_EQ(early->send(1), 0);
    ASSERT_EQ(early->send(2), 0);
    EXPECT_TRUE(early->is_silent(100));
    ASSERT_EQ(late.receive(3), 0);
    ASSERT_EQ(late.receive(4), 0);
    ASSERT_EQ(to_rtr(late, early->qp->qp_num), 0);  // an end that only answers does not need RTS
    EXPECT_EQ(early->next().wr_id, 1u);
    EXPECT_EQ(early->next().status, IBV_WC_SUCCESS);
    EXPECT_EQ(late.next().wr_id, 3u);
    EXPECT_EQ(late.next().status, IBV_WC_SUCCESS);
    EXPECT_STREQ(late.memory + 32, "early");
    EXPECT_EQ(late.state(), IBV_QPS_RTR);
    a_.destroy();
    b_.destroy();
    a_ = End{};
    b_ = End{};
    a_.make(context_, pd_);
    b_.make(context_, pd_);
  }
}

TEST_F(MeetingTest, AfterResetAQueuePairIsInInitAndSendsAreRefusedUntilRts) {
  End& end = active();
  ASSERT_EQ(to_rtr(end, passive().qp->qp_num), 0);
  ASSERT_EQ(to_rts(end, 0), 0);
  ASSERT_EQ(end.send(1), 0);
  end.reset();
  EXPECT_EQ(end.send(2), EINVAL);
  end.init();
  EXPECT_EQ(end.state(), IBV_QPS_INIT);
  EXPECT_EQ(end.send(2), EINVAL);
  ASSERT_EQ(to_rtr(end, passive().qp->qp_num), 0);
  EXPECT_EQ(end.send(2), EINVAL);
  ASSERT_EQ(to_rts(end, 0), 0);
  EXPECT_EQ(end.send(2), 0);
}

// proves: DI-12
TEST_F(MeetingTest, APeerThatNeverConnectsFailsSendsWithRetriesExceeded) {
  for (const bool connects : {true, false}) {
    End& end = connects ? active() : passive();
    ready(end, &end == &a_ ? b_ : a_);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(end.send(1), 0);
    ASSERT_EQ(end.send(2), 0);
    expect_lost(end);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900));
    // The other end has received this attempt, and might still accept it.
    a_.destroy();
    b_.destroy();
    a_ = End{};
    b_ = End{};
    a_.make(context_, pd_);
    b_.make(context_, pd_);
  }
}

TEST_F(MeetingTest, WithoutASendThePeerDoesNotTimeOut) {
  ready(a_, b_);
  usleep(1'300'000);
  EXPECT_EQ(a_.state(), IBV_QPS_RTS);
  ready(b_, a_);
  one_way(a_, b_);
}

TEST_F(MeetingTest, TheFirstSendDetectsAPeerThatHasGone) {
  const std::uint32_t gone = passive().qp->qp_num;
  End& left = active();
  passive().destroy_qp();
  ASSERT_EQ(to_rtr(left, gone), 0);
  ASSERT_EQ(to_rts(left), 0);
  ASSERT_EQ(left.send(1), 0);
  ASSERT_EQ(left.send(2), 0);
  expect_lost(left);
}

// A program that has its result ends without a message, as it may with InfiniBand: its peer must
// not get a flush right after its last receive, which would look like an error.
// proves: DI-12
TEST_F(MeetingTest, ReceivesAreNotFlushedAtOnceWhenThePeerEnds) {
  expect_outlives(passive(), active());
}

// proves: DI-12
TEST_F(MeetingTest, ReceivesOfTheActiveEndAreNotFlushedAtOnceEither) {
  expect_outlives(active(), passive());
}

TEST_F(MeetingTest, AQueuePairMayBeDestroyedWhileItConnectsOrIsExpected) {
  ready(active(), passive());
  ASSERT_EQ(active().send(1), 0);
  active().destroy_qp();
  End& left = a_.qp == nullptr ? b_ : a_;
  c_.make(context_, pd_);
  // The request of the destroyed one must not count for the peer that is expected now.
  ready(left, c_);
  ready(c_, left);
  one_way(left, c_);
  one_way(c_, left);
}

// proves: DI-12
TEST_F(MeetingTest, AnUnexpectedPeerIsRefused) {
  c_.make(context_, pd_);
  // The last of the three waits for the second, and the first one connects.
  End& awaited = b_;
  ASSERT_LT(a_.qp->qp_num, c_.qp->qp_num);
  ready(c_, awaited);
  ASSERT_EQ(to_rtr(a_, c_.qp->qp_num), 0);
  ASSERT_EQ(to_rts(a_), 0);
  ASSERT_EQ(a_.send(1), 0);
  ASSERT_EQ(a_.send(2), 0);
  expect_lost(a_);
  ready(awaited, c_);
  one_way(awaited, c_);
}

// Five others send requests before the program has named any of them; then it names one whose
// request still waits.
TEST_F(MeetingTest, EarlyRequestsAreBoundedAndTheOldestIsRefused) {
  std::array<End, 5> others;
  for (End& e : others) e.make(context_, pd_);
  // The one with the largest number gets a request from each of the others.
  std::vector<End*> all{&a_, &b_};
  for (End& e : others) all.push_back(&e);
  std::sort(all.begin(), all.end(),
            [](const End* x, const End* y) { return x->qp->qp_num < y->qp->qp_num; });
  End& asked = *all.back();
  all.pop_back();
  End& late = *all.back();
  all.pop_back();
  ASSERT_EQ(all.size(), 5u);
  const auto ask = [&](const End& e) {
    ASSERT_EQ(to_rtr(e, asked.qp->qp_num), 0);
    ASSERT_EQ(to_rts(e, 0), 0);
  };
  const auto count_lost = [&] {
    return std::count_if(all.begin(), all.end(),
                         [](const End* e) { return e->state() == IBV_QPS_ERR; });
  };
  for (End* e : all) {
    ask(*e);
    ASSERT_EQ(e->send(1), 0);
    ASSERT_EQ(e->send(2), 0);
  }
  EXPECT_TRUE(urnic::test::soon([&] { return count_lost() != 0; }));
  ASSERT_EQ(count_lost(), 1);
  End& refused = **std::find_if(all.begin(), all.end(),
                                [](const End* e) { return e->state() == IBV_QPS_ERR; });
  expect_lost(refused);
  std::erase(all, &refused);
  for (const End* e : all) EXPECT_TRUE(e->is_silent(20)) << "who is among the last four waits";

  End& taken = *all.front();
  ASSERT_EQ(asked.receive(3), 0);
  ASSERT_EQ(asked.receive(4), 0);
  ready(asked, taken);
  for (const std::uint64_t id : {1, 2}) {
    EXPECT_EQ(taken.next().wr_id, id);
    EXPECT_EQ(asked.next().status, IBV_WC_SUCCESS);
  }
  one_way(asked, taken);
  std::erase(all, &taken);
  for (End* e : all) expect_lost(*e);

  // Another time, with a peer that has not sent a request yet.
  asked.reset();
  asked.init();
  ready(late, asked);
  ready(asked, late);
  one_way(late, asked);
  for (End& e : others) e.destroy();
}

// proves: DI-12
TEST_F(MeetingTest, AnImpossiblePeerIsRefused) {
  EXPECT_EQ(to_rtr(a_, a_.qp->qp_num), EOPNOTSUPP);  // itself
  EXPECT_EQ(to_rtr(a_, 0), EINVAL);
  ibv_qp_attr rtr{};
  rtr.qp_state = IBV_QPS_RTR;
  rtr.dest_qp_num = b_.qp->qp_num;
  EXPECT_EQ(ibv_modify_qp(a_.qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN), EOPNOTSUPP);
  EXPECT_EQ(ibv_modify_qp(a_.qp, &rtr, IBV_QP_STATE | IBV_QP_DEST_QPN), EINVAL);
  EXPECT_EQ(a_.state(), IBV_QPS_INIT);
  ready(a_, b_);
  ready(b_, a_);
  one_way(a_, b_);
}

}  // namespace
}  // namespace meeting
