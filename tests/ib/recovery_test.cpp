// When a queue pair is FAST and when it is SLOW.
#include "ib/recovery.h"

#include <gtest/gtest.h>

namespace urnic::ib {
namespace {

LossRules rules(std::uint32_t attempts, std::uint32_t after) {
  LossRules r;
  r.type = ConnectionType::Fast;
  r.max_recovery_attempts = attempts;
  r.upgrade_after = after;
  return r;
}

// Takes requests in order after the recovery; returns how many until it was FAST.
std::uint32_t until_fast(Recovery* r, std::uint64_t* taken, std::uint32_t most) {
  for (std::uint32_t n = 1; n <= most; ++n) {
    ++*taken;
    if (r->taken(Psn(static_cast<std::uint32_t>(*taken)), *taken)) return n;
  }
  return 0;
}

TEST(RecoveryTest, BeginsWithItsInitialType) {
  EXPECT_EQ(Recovery(rules(1, 1)).type(), ConnectionType::Fast);
  Recovery slow{LossRules{}};
  EXPECT_EQ(slow.type(), ConnectionType::Slow);
  EXPECT_EQ(name(slow.reason()), "initiated-slow");
  EXPECT_FALSE(slow.waits());
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_FALSE(slow.taken(Psn(i), i));
  EXPECT_EQ(slow.type(), ConnectionType::Slow) << "for ever";
}

// proves: S-8
TEST(RecoveryTest, ExactlyTheLimitOfGapsIsAllowed) {
  Recovery r(rules(3, 1));
  EXPECT_FALSE(r.waits());
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(r.gap(Psn(10 + 2 * i)));
  EXPECT_TRUE(r.waits());
  EXPECT_FALSE(r.gap(Psn(20)));
  Recovery none(rules(0, 1));
  EXPECT_FALSE(none.gap(Psn(1)));
}

// proves: S-8
TEST(RecoveryTest, EndsWhenEverythingUpToThePacketThatRevealedItsFirstGapIsAccepted) {
  Recovery r(rules(2, 1));
  r.gap(Psn(0xffffff));  // revealed by this one
  r.gap(Psn(7));
  r.taken(Psn(0xffffff), 1);
  EXPECT_FALSE(r.gap(Psn(9))) << "that one itself has not been taken";
  r.taken(Psn(0), 2);
  EXPECT_TRUE(r.gap(Psn(9))) << "another recovery";
  EXPECT_TRUE(r.gap(Psn(11)));
  EXPECT_FALSE(r.gap(Psn(13)));
}

// proves: S-8
TEST(RecoveryTest, EnoughConsecutiveRequestsInOrderMakeItFastAgain) {
  Recovery r(rules(2, 5));
  std::uint64_t taken = 0;
  r.downgrade(SlowReason::StoreFull, taken);
  EXPECT_EQ(r.type(), ConnectionType::Slow);
  EXPECT_EQ(name(r.reason()), "store-full");
  EXPECT_TRUE(r.waits());
  EXPECT_EQ(until_fast(&r, &taken, 4), 0u);
  r.broken();
  EXPECT_EQ(until_fast(&r, &taken, 100), 5u);
  EXPECT_EQ(r.type(), ConnectionType::Fast);
  EXPECT_EQ(name(r.reason()), "");
  EXPECT_FALSE(r.waits());
  EXPECT_TRUE(r.gap(Psn(200)));
}

TEST(RecoveryTest, EachFurtherDowngradeDoublesTheRequestsNeeded) {
  Recovery r(rules(2, 5));
  std::uint64_t taken = 0;
  for (const std::uint32_t needed : {5u, 10u, 20u, 40u}) {
    r.downgrade(SlowReason::RecoveryExhausted, taken);
    EXPECT_EQ(until_fast(&r, &taken, 100), needed);
  }
  // Halved once for each 2^16 requests accepted while FAST, and never below the first number.
  taken += 2 << 16;
  r.downgrade(SlowReason::RecoveryExhausted, taken);
  EXPECT_EQ(until_fast(&r, &taken, 100), 20u);
  taken += 40 << 16;
  r.downgrade(SlowReason::RecoveryExhausted, taken);
  EXPECT_EQ(until_fast(&r, &taken, 100), 10u);
}

TEST(RecoveryTest, TheRequestsNeededAreBounded) {
  Recovery r(rules(2, LossRules::kMostUpgradeAfter));
  std::uint64_t taken = 0;
  for (int i = 0; i < 3; ++i) {
    r.downgrade(SlowReason::RecoveryExhausted, taken);
    EXPECT_EQ(until_fast(&r, &taken, 100'000), LossRules::kMostUpgradeAfter);
  }
}

}  // namespace
}  // namespace urnic::ib
