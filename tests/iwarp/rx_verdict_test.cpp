// The receive path: the steps together. The decisions are tested in their own folders; this tests
// that the engine calls the right one at the right time.
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

using fastpath::Reason;

struct RxVerdict : RxPath {
  std::uint64_t met(Reason r) { return p.stats().iwarp.reasons[static_cast<std::size_t>(r)]; }
  std::uint32_t attempts() { return p.connection()->context.recovery_attempts; }
};

// The most common segment (in order, one FPDU, a Write) ends a recovery if it was sent after the
// errors. The repaired segment itself does not.
// proves
TEST_F(RxVerdict, ThePlainInOrderSegmentEndsARecovery) {
  up(2);
  send_spoiled(0);
  ASSERT_EQ(attempts(), 1u);
  send(0);
  EXPECT_EQ(attempts(), 1u) << "the repaired segment proves nothing";
  send(1);
  EXPECT_EQ(attempts(), 0u);
  // Two more drops are allowed now, not just one.
  send_spoiled(2);
  send_spoiled(2);
  EXPECT_TRUE(p.fast());
  send_spoiled(2);
  EXPECT_FALSE(p.fast());
}

// ... and the same out of order does not.
// proves: R-37
TEST_F(RxVerdict, AnOutOfOrderSegmentDoesNotEndARecovery) {
  up(2);
  send_spoiled(0);
  send(2);
  send(3);
  EXPECT_EQ(attempts(), 1u);
}

// A bad segment beyond the last recovery begins a new one.
// proves: R-41
TEST_F(RxVerdict, AnErrorBeyondTheLastRecoveryBeginsANewOne) {
  up(2);
  send_spoiled(0);
  send_spoiled(0);
  send(0);
  send_spoiled(1);
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(attempts(), 1u);
}

// A decision changes the context only if the segment is really treated that way: a Send without a
// receive beyond the last recovery does not end it.
// proves: R-115
TEST_F(RxVerdict, ASegmentThatAdmitRefusesDoesNotEndARecovery) {
  up(2);
  send_spoiled(0);
  send(0);
  const Bytes m = HandPeer::send_message(1, Bytes(100, 5));
  p.send(kSize, m);
  EXPECT_EQ(p.stats().iwarp.empty_rq_drops, 1u);
  EXPECT_EQ(attempts(), 1u);
  ASSERT_TRUE(p.post_receive(1, 20000, 900));
  p.send(kSize, m);
  EXPECT_EQ(good_receives(p), 1u);
  EXPECT_EQ(attempts(), 0u);
}

// ... and the segment that would complete an upgrade does not upgrade.
// proves: R-115
TEST_F(RxVerdict, AnUpgradeThatAdmitRefusesDoesNotHappen) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.max_recovery_attempts = 1;
    c.context.max_same_segment = 0;
    c.context.upgrade_after = 1;
  }));
  prepare();
  make_downgraded();
  const Bytes m = HandPeer::send_message(1, Bytes(100, 5));
  p.send(kSize, m);
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().iwarp.upgrades, 0u);
  EXPECT_EQ(p.rcv_nxt(), kSize);
  ASSERT_TRUE(p.post_receive(1, 20000, 900));
  p.send(kSize, m);
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.stats().iwarp.upgrades, 1u);
  EXPECT_EQ(good_receives(p), 1u);
}

// Counts after holes while FAST do not affect holes that open and close on SLOW.
// proves: R-48
TEST_F(RxVerdict, CountsOfForgottenHolesAreNotDeliveredWithLaterOnes) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) { c.context.max_recovery_attempts = 1; }));
  std::vector<Bytes> m;
  std::vector<std::uint64_t> at = {0};
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
    m.push_back(HandPeer::send_message(static_cast<std::uint32_t>(i + 1), Bytes(100 + i, 7)));
    at.push_back(at.back() + m.back().size());
  }
  p.send(at[1], m[1]);
  p.send(at[3], m[3]);
  const Bytes head(m[0].begin(), m[0].begin() + 20);
  p.send(0, head);
  p.send(0, head);
  ASSERT_FALSE(p.fast());
  EXPECT_EQ(p.connection()->hole_counters.size(), 0u);
  p.send(at[2], m[2]);  // a hole on SLOW
  EXPECT_TRUE(p.receives().empty());
  p.send(20, Bytes(m[0].begin() + 20, m[0].end()));
  EXPECT_EQ(good_receives(p), 1u);
  p.send(at[1], m[1]);
  EXPECT_EQ(good_receives(p), 3u);
  p.send(at[3], m[3]);
  ASSERT_EQ(good_receives(p), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(p.receives()[i].completion.wr_id, i);
    EXPECT_EQ(p.receives()[i].completion.byte_len, 100 + i);
  }
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
}

// proves: T-1, R-11, R-54
TEST_F(RxVerdict, AConnectionInitiatedSlowDoesNotUseInLogic) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.initiated_as = ConnectionType::Slow;
    c.context.upgrade_after = 1;
  }));
  prepare();
  for (std::size_t i = 0; i < 4; ++i) {
    const auto a = send(i);
    ASSERT_EQ(a.size(), 1u);
    EXPECT_EQ(a[0].ack, (i + 1) * kSize);
    EXPECT_FALSE(p.fast());
  }
  EXPECT_EQ(met(Reason::Slow), 4u);
  EXPECT_EQ(p.stats().iwarp.bytes_slow, 4 * kSize);
  EXPECT_EQ(p.stats().iwarp.upgrades, 0u);
}

}  // namespace
}  // namespace urnic::test
