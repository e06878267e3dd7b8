// The receive path: Sends without a posted receive (section 10).
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

// proves, E-5
TEST_F(RxPath, ASendWithoutAReceiveIsDroppedAndCompletesOnceOneIsPosted) {
  up();
  const Bytes m = HandPeer::send_message(1, Bytes(100, 5));
  // After a valid Write in the same segment: nothing of the segment is accepted (E-5).
  const Bytes both = joined({fpdus[0], m});
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
  EXPECT_EQ(p.at(20000, 100), Bytes(100, 5));
  EXPECT_TRUE(placed(0));
}

// proves: R-114
TEST_F(RxPath, AnOutOfOrderSendWithoutAReceiveIsDropped) {
  ASSERT_TRUE(p.up());
  const Bytes m1 = HandPeer::send_message(1, Bytes(100, 5)),
              m2 = HandPeer::send_message(2, Bytes(100, 6));
  ASSERT_TRUE(p.post_receive(1, 1000, 900));
  const auto a = p.send(m1.size(), m2);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].sack.empty());
  EXPECT_EQ(p.holes(), 0u);
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.stats().iwarp.empty_rq_drops, 1u);
  ASSERT_TRUE(p.post_receive(2, 2000, 900));
  p.send(m1.size(), m2);
  p.send(0, m1);
  ASSERT_EQ(good_receives(p), 2u);
  EXPECT_EQ(p.receives()[1].completion.wr_id, 2u);
}

// proves: R-115
TEST_F(RxPath, EmptyReceiveQueueDropsDoNotCountAsRecoveryAttempts) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.max_recovery_attempts = 1;
    c.context.max_same_segment = 1;
  }));
  const Bytes m = HandPeer::send_message(1, Bytes(100, 5));
  for (int i = 0; i < 50; ++i) p.send(0, m);
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 0u);
  EXPECT_EQ(p.connection()->context.recovery_attempts, 0u);
  EXPECT_EQ(p.stats().iwarp.empty_rq_drops, 50u);
}

// proves: R-116
TEST_F(RxPath, OnSlowASendWithoutAReceiveTerminates) {
  ASSERT_TRUE(
      p.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Slow; }));
  p.send(0, HandPeer::send_message(1, Bytes(100, 5)));
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 1u);
  EXPECT_NE(p.qp->state, verbs::QpState::Rts);
}

// proves: R-117
TEST_F(RxPath, AMessageLongerThanItsReceiveTerminatesOnBothTypes) {
  for (const auto type : {ConnectionType::Fast, ConnectionType::Slow}) {
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) { c.context.initiated_as = type; }));
    ASSERT_TRUE(h.post_receive(1, 0, 99));
    h.send(0, HandPeer::send_message(1, Bytes(100, 5)));
    EXPECT_EQ(h.stats().iwarp.ddp.terminates_sent, 1u);
    EXPECT_NE(h.qp->state, verbs::QpState::Rts);
    EXPECT_TRUE(h.untouched());
  }
}

// proves: E-17
TEST_F(RxPath, AStarvedConnectionIsNudgedWhenAReceiveIsPosted) {
  for (const bool nudge : {true, false}) {
    HandPeer h;
    h.options.rq_nudge = nudge;
    ASSERT_TRUE(h.up());
    const Bytes m = HandPeer::send_message(1, Bytes(100, 5));
    h.send(0, m);
    ASSERT_TRUE(h.post_receive(1, 0, 900));
    const auto a = h.pass(Duration::us(10));
    EXPECT_EQ(a.size(), nudge ? 3u : 0u);
    for (const Answer& x : a) EXPECT_EQ(x.ack, 0u);
  }
}

// [Send 1][Write, received before][Send 2], and only one receive is posted: nothing of it is
// accepted, a duplicate ACK reports that, and the receive is announced when it is posted.
// proves, E-5, E-17
TEST_F(RxPath, AnOverlapWhoseSecondPartHasNoReceiveIsRefusedWhole) {
  ASSERT_TRUE(p.up());
  ASSERT_TRUE(p.post_receive(1, 0, 900));
  const Bytes m1 = HandPeer::send_message(1, Bytes(100, 5)),
              m2 = HandPeer::send_message(2, Bytes(100, 6)), w = p.write(5000, Bytes(100, 7));
  p.send(m1.size(), w);
  const Bytes all = joined({m1, w, m2});
  auto a = p.send(0, all);
  EXPECT_EQ(p.rcv_nxt(), 0u);
  EXPECT_TRUE(p.receives().empty());
  EXPECT_EQ(p.stats().iwarp.empty_rq_drops, 1u);
  EXPECT_EQ(p.stats().iwarp.immediate_dup_acks, 1u);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 0u);
  ASSERT_TRUE(p.post_receive(2, 1000, 900));
  EXPECT_EQ(p.pass(Duration::us(10)).size(), 3u) << "E-17";
  p.send(0, all);
  EXPECT_EQ(p.rcv_nxt(), all.size());
  EXPECT_EQ(good_receives(p), 2u);
}

// ... and the same segment again, since the consumer waits for Send 1 before it posts: Send 1 is
// accepted, and the rest is refused like any Send without a receive.
// proves, E-17
TEST_F(RxPath, OfARepeatedOverlapTheFirstPartIsAcceptedAndTheRestRefused) {
  ASSERT_TRUE(p.up());
  ASSERT_TRUE(p.post_receive(1, 0, 900));
  const Bytes m1 = HandPeer::send_message(1, Bytes(100, 5)),
              m2 = HandPeer::send_message(2, Bytes(100, 6)), w = p.write(5000, Bytes(100, 7));
  p.send(m1.size(), w);
  const Bytes all = joined({m1, w, m2});
  p.send(0, all);
  p.send(0, all);
  EXPECT_EQ(good_receives(p), 1u);
  const std::uint64_t taken = m1.size() + w.size();
  EXPECT_EQ(p.rcv_nxt(), taken);
  EXPECT_EQ(p.stats().iwarp.empty_rq_drops, 2u);
  EXPECT_EQ(p.stats().iwarp.immediate_dup_acks, 2u);
  ASSERT_TRUE(p.post_receive(2, 1000, 900));
  EXPECT_EQ(p.pass(Duration::us(10)).size(), 3u) << "E-17";
  p.send(0, all);
  EXPECT_EQ(good_receives(p), 2u);
  EXPECT_EQ(p.rcv_nxt(), all.size());
  EXPECT_TRUE(p.fast());
}

}  // namespace
}  // namespace urnic::test
