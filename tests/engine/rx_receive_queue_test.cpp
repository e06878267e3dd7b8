// The receive path: Sends for which no receive is posted (section 10).
#include "tests/engine/rx_path.h"

namespace urnic::test {
namespace {

// proves, E-5
TEST_F(RxPath, ASendWithoutAReceiveIsDroppedAndCompletesOnceOneIsPosted) {
  up();
  const Octets m = HandPeer::send_message(1, Octets(100, 5));
  // Behind a valid Write in the same segment: nothing of the segment is taken (E-5).
  const Octets both = joined({fpdus[0], m});
  for (int i = 0; i < 5; ++i) {
    const auto a = p.send(0, both);
    ASSERT_EQ(a.size(), 1u) << "one duplicate ACK per drop (Q-14)";
    EXPECT_EQ(a[0].ack, 0u);
  }
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.rcv_nxt(), 0u);
  EXPECT_NE(p.connection(), nullptr);
  ASSERT_TRUE(p.post_receive(77, 20000, 900));
  p.send(0, both);
  ASSERT_EQ(good_receives(p), 1u);
  EXPECT_EQ(p.receives()[0].completion.wr_id, 77u);
  EXPECT_EQ(p.at(20000, 100), Octets(100, 5));
  EXPECT_TRUE(placed(0));
}

// Of an overlap the first new run is taken; the second one has a Send nobody has a receive for.
// proves, E-17
TEST_F(RxPath, TheRunOfAnOverlapThatFindsNoReceiveIsADropLikeAnyOther) {
  up();
  const Octets m = HandPeer::send_message(1, Octets(100, 5));
  send(1);  // behind a gap
  const Octets all = joined({fpdus[0], fpdus[1], m});
  const auto a = p.send(0, all);
  ASSERT_FALSE(a.empty());
  EXPECT_EQ(p.rcv_nxt(), 2 * kSize) << "no octet of the Send is taken";
  EXPECT_EQ(p.stats().empty_rq_drops, 1u);
  EXPECT_GE(p.stats().immediate_dup_acks, 1u);
  EXPECT_EQ(a.back().ack, 2 * kSize);
  EXPECT_EQ(p.stats().recovery_attempts, 0u);
  ASSERT_TRUE(p.post_receive(77, 20000, 900));
  EXPECT_EQ(p.acknowledge(3 * kSize).size(), 3u) << "who waits is told";
  p.send(2 * kSize, m);
  ASSERT_EQ(good_receives(p), 1u);
  EXPECT_EQ(p.receives()[0].completion.wr_id, 77u);
}

TEST_F(RxPath, ASendOutOfOrderWhoseReceiveIsMissingIsDropped_R114) {
  ASSERT_TRUE(p.up());
  const Octets m1 = HandPeer::send_message(1, Octets(100, 5)),
               m2 = HandPeer::send_message(2, Octets(100, 6));
  ASSERT_TRUE(p.post_receive(1, 1000, 900));
  const auto a = p.send(m1.size(), m2);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].sack.empty());
  EXPECT_EQ(p.holes(), 0u);
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.stats().empty_rq_drops, 1u);
  ASSERT_TRUE(p.post_receive(2, 2000, 900));
  p.send(m1.size(), m2);
  p.send(0, m1);
  ASSERT_EQ(good_receives(p), 2u);
  EXPECT_EQ(p.receives()[1].completion.wr_id, 2u);
}

TEST_F(RxPath, EmptyReceiveQueueDropsAreNoRecoveryAttempts_R115) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.max_recovery_attempts = 1;
    c.context.max_same_segment = 1;
  }));
  const Octets m = HandPeer::send_message(1, Octets(100, 5));
  for (int i = 0; i < 50; ++i) p.send(0, m);
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.stats().recovery_attempts, 0u);
  EXPECT_EQ(p.connection()->context.recovery_attempts, 0u);
  EXPECT_EQ(p.stats().empty_rq_drops, 50u);
}

TEST_F(RxPath, OnSlowASendWithoutAReceiveTerminates_R116) {
  ASSERT_TRUE(
      p.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Slow; }));
  p.send(0, HandPeer::send_message(1, Octets(100, 5)));
  EXPECT_EQ(p.stats().terminates_sent, 1u);
  EXPECT_NE(p.qp->state, verbs::QpState::Rts);
}

TEST_F(RxPath, AMessageLongerThanItsReceiveTerminatesOnBothTypes_R117) {
  for (const auto type : {ConnectionType::Fast, ConnectionType::Slow}) {
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) { c.context.initiated_as = type; }));
    ASSERT_TRUE(h.post_receive(1, 0, 99));
    h.send(0, HandPeer::send_message(1, Octets(100, 5)));
    EXPECT_EQ(h.stats().terminates_sent, 1u);
    EXPECT_NE(h.qp->state, verbs::QpState::Rts);
    EXPECT_TRUE(h.untouched());
  }
}

TEST_F(RxPath, AStarvedConnectionIsNudgedWhenAReceiveIsPosted_E17) {
  for (const bool nudge : {true, false}) {
    HandPeer h;
    h.options.rq_nudge = nudge;
    ASSERT_TRUE(h.up());
    const Octets m = HandPeer::send_message(1, Octets(100, 5));
    h.send(0, m);
    ASSERT_TRUE(h.post_receive(1, 0, 900));
    const auto a = h.pass(Duration::us(10));
    EXPECT_EQ(a.size(), nudge ? 3u : 0u);
    for (const Answer& x : a) EXPECT_EQ(x.ack, 0u);
  }
}

}  // namespace
}  // namespace urnic::test
