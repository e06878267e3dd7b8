// The receive path: from FAST to SLOW and back.
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

// ---- downgrade with data placed out of order, Fig 5 ---------------------------------------------

// Arrival 3 (FAST), then the downgrade by an error at 0, then 4, 1, 2.
// proves, H-10
TEST_F(RxPath, DataPlacedBeforeADowngradeIsReceivedAgainCorrectly) {
  up(1);
  const std::uint64_t third = 2 * kSize;
  auto a = send(2);
  ASSERT_EQ(a.back().sack.size(), 1u);
  send_spoiled(3);
  ASSERT_TRUE(p.fast());
  // The consumer's memory must not be trusted: the placed data is overwritten here.
  std::fill(p.region.begin() + 2000, p.region.begin() + 2000 + kPayload, 0xdd);
  a = p.send(3 * kSize, Bytes(fpdus[3].begin(), fpdus[3].begin() + 100));  // 4, cut: downgrade
  ASSERT_FALSE(p.fast());
  for (const Answer& x : a) {
    EXPECT_EQ(x.ack, 0u);
    for (const auto& block : x.sack) EXPECT_NE(block.first, third) << "no longer reported";
  }
  ASSERT_EQ(a.back().sack.size(), 1u) << "what came after the downgrade is";
  EXPECT_EQ(a.back().sack[0], std::make_pair(3 * kSize, 3 * kSize + 100));
  send(0);
  a = send(1);
  EXPECT_EQ(a.back().ack, third) << "not over what was forgotten";
  EXPECT_EQ(p.rcv_nxt(), third);
  EXPECT_EQ(p.at(2000, kPayload), Bytes(kPayload, 0xdd));
  send(2);
  EXPECT_TRUE(placed(2)) << "new data, placed over the earlier placement";
  send(3);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(placed(i));
  EXPECT_EQ(p.rcv_nxt(), 4 * kSize);
}

// proves: R-49
TEST_F(RxPath, ATriggeringSegmentThatFillsTheGapDoesNotPassForgottenData) {
  up(1);
  send(1);
  send_spoiled(2);
  ASSERT_TRUE(p.fast());
  // In order, exactly up to the block: if the hole still existed, RCV.NXT would jump past the
  // block.
  const auto a = send_spoiled(0);
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(a.front().ack, kSize);
}

// proves, H-10
TEST_F(RxPath, SendsCountedBeforeADowngradeCompleteOnceAfterIt) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) { c.context.max_recovery_attempts = 1; }));
  std::vector<Bytes> m;
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
    m.push_back(HandPeer::send_message(static_cast<std::uint32_t>(i + 1), Bytes(100 + i, 7)));
  }
  std::vector<std::uint64_t> at = {0};
  for (const Bytes& f : m) at.push_back(at.back() + f.size());
  p.send(at[1], m[1]);
  p.send(at[3], m[3]);
  Bytes bad = m[0];
  bad[30] ^= 1;
  p.send(at[0], bad);
  ASSERT_TRUE(p.fast());
  p.send(at[0], Bytes(m[0].begin(), m[0].begin() + 20));  // misaligned: the limit is reached
  ASSERT_FALSE(p.fast());
  EXPECT_TRUE(p.receives().empty());
  for (const std::size_t i : {1u, 0u, 3u, 2u}) p.send(at[i], m[i]);  // a hole again
  ASSERT_EQ(good_receives(p), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(p.receives()[i].completion.wr_id, i);
    EXPECT_EQ(p.receives()[i].completion.byte_len, 100 + i);
  }
}

// ---- upgrade, Fig 6 ----------------------------------------------------------------------------

// proves
TEST_F(RxPath, AnUpgradeNeedsAnEmptyBufferAndCutsItsSegmentThrough) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.max_recovery_attempts = 1;
    c.context.upgrade_after = 1;
  }));
  prepare();
  const Bytes head(fpdus[0].begin(), fpdus[0].begin() + 40);
  p.send(0, head);
  p.send(0, head);
  ASSERT_FALSE(p.fast());
  // Part of an FPDU is pending: an aligned segment after it is out of order, and the rest is
  // misaligned.
  send(1);
  EXPECT_FALSE(p.fast());
  p.send(40, Bytes(fpdus[0].begin() + 40, fpdus[0].end()));
  EXPECT_FALSE(p.fast());
  EXPECT_TRUE(placed(0) && placed(1));
  const std::uint64_t slow = p.stats().iwarp.bytes_slow;
  send(2);
  EXPECT_TRUE(p.fast());
  EXPECT_TRUE(placed(2));
  EXPECT_EQ(p.stats().iwarp.bytes_slow, slow) << "the triggering segment is cut through";
  EXPECT_EQ(p.stats().iwarp.upgrades, 1u);
  EXPECT_EQ(p.connection()->context.recovery_attempts, 0u);
}

// In order and valid by itself, but inside another FPDU whose beginning is pending.
// proves: R-52
TEST_F(RxPath, AnFpduInsideAPendingOneDoesNotUpgrade) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.max_recovery_attempts = 1;
    c.context.upgrade_after = 1;
  }));
  prepare();
  const Bytes outside = joined({Bytes(200, 5), fpdus[1], Bytes(100, 6)});
  const Bytes f = p.write(8000, outside);
  constexpr std::size_t kHead = 2 + 14 + 200;
  const auto piece = [&](std::size_t from, std::size_t to) {
    return Bytes(f.begin() + static_cast<std::ptrdiff_t>(from),
                 f.begin() + static_cast<std::ptrdiff_t>(to));
  };
  p.send(0, piece(0, kHead));
  p.send(0, piece(0, kHead));
  ASSERT_FALSE(p.fast());
  ASSERT_EQ(p.rcv_nxt(), kHead);
  p.send(kHead, piece(kHead, kHead + kSize));
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().iwarp.upgrades, 0u);
  EXPECT_FALSE(placed(1)) << "it is payload, not an FPDU";
  p.send(kHead + kSize, piece(kHead + kSize, f.size()));
  EXPECT_EQ(p.at(8000, outside.size()), outside);
  p.send(f.size(), fpdus[0]);
  EXPECT_TRUE(p.fast());
}

// proves: R-53
TEST_F(RxPath, AMisalignedSegmentDoesNotUpgradeEvenWithAnEmptyBuffer) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.max_recovery_attempts = 1;
    c.context.upgrade_after = 1;
  }));
  prepare();
  make_downgraded();
  const Bytes half(fpdus[2].begin(), fpdus[2].begin() + 100);
  p.send(kSize, joined({fpdus[1], half}));
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.rcv_nxt(), 2 * kSize + 100);
  p.send(2 * kSize + 100, Bytes(fpdus[2].begin() + 100, fpdus[2].end()));
  EXPECT_FALSE(p.fast());
  EXPECT_TRUE(placed(1) && placed(2));
  EXPECT_EQ(p.stats().iwarp.bytes_fast, 0u);
  send(3);
  EXPECT_TRUE(p.fast());
}

// proves: R-54
TEST_F(RxPath, AConnectionInitiatedSlowStaysSlow) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.initiated_as = ConnectionType::Slow;
    c.context.upgrade_after = 1;
  }));
  prepare();
  for (std::size_t i = 0; i < 4; ++i) send(i);
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().iwarp.bytes_fast, 0u);
}

}  // namespace
}  // namespace urnic::test
