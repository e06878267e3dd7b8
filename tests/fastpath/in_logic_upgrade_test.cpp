// Upgrade, Fig 6: when a SLOW connection becomes FAST again.
#include <gtest/gtest.h>

#include "fastpath/in_logic_connection.h"

namespace urnic::fastpath {
namespace {

using namespace in_logic_test;

struct Slow : Connection {
  Slow() {
    c.type = ConnectionType::Slow;
    c.was_downgraded = true;
  }
};

// proves: R-55
TEST(InLogicUpgrade, AllThreeConditionsMakeTheTriggeringSegmentFast) {
  Slow k;
  k.facts.now = Instant::from_ns(1234);
  const PathDecision v = k.good(100);
  EXPECT_EQ(v.action, PathAction::Fast);
  EXPECT_EQ(v.reason, Reason::Upgrade);
  EXPECT_TRUE(v.upgraded);
  EXPECT_TRUE(k.fast());
  EXPECT_EQ(k.c.fast_since, Instant::from_ns(1234));
  EXPECT_EQ(k.c.recovery_attempts, 0u);
}

// proves: R-52
TEST(InLogicUpgrade, NotWhileTheReassemblyBufferHoldsData) {
  Slow k;
  k.facts.reassembly_empty = false;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(k.good(100).action, PathAction::Store);
  k.facts.reassembly_empty = true;
  EXPECT_EQ(k.good(100).action, PathAction::Fast);
}

// proves: R-53
TEST(InLogicUpgrade, NotOnAMisalignedOrInvalidSegment) {
  for (const auto& v : {results({kInvalid}), results({kTooLong}), results({kValid, kInvalid}),
                        results({kValid, kTooLong})}) {
    Slow k;
    EXPECT_EQ(k.arrive(100, Arrival::InOrder, v).action, PathAction::Store);
    EXPECT_FALSE(k.fast());
  }
}

// proves: R-53
TEST(InLogicUpgrade, NotOnASegmentThatIsNotInOrder) {
  Slow k;
  EXPECT_EQ(k.good(100, Arrival::OutOfOrder).action, PathAction::Store);
  k.facts.seam_on_boundary = true;
  EXPECT_EQ(k.good(100, Arrival::Overlap).action, PathAction::Store);
}

// proves: R-54
TEST(InLogicUpgrade, NeverForAConnectionInitiatedSlow) {
  Slow k;
  k.c.config.initiated_as = ConnectionType::Slow;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(k.good(100).action, PathAction::Store);
}

// proves: E-2
TEST(InLogicUpgrade, NeverWithoutCrc) {
  Slow k;
  k.c.config.crc = false;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(k.good(100).action, PathAction::Store);
}

// proves: R-55
TEST(InLogicUpgrade, AVerdictThatIsNotAppliedChangesNothing) {
  Slow k;
  SegmentFacts f;
  const Validation v = results({kValid});
  f.validation = &v;
  EXPECT_TRUE(decide(k.c, f).upgraded);
  EXPECT_FALSE(k.fast());
  EXPECT_TRUE(decide(k.c, f).upgraded);
}

// proves: E-9
TEST(InLogicUpgrade, NAlignedSegmentsInARow) {
  Slow k;
  k.c.upgrade_needed = 64;
  for (int i = 0; i < 63; ++i) ASSERT_EQ(k.good(100).action, PathAction::Store);
  EXPECT_EQ(k.good(100).action, PathAction::Fast);
}

// proves: E-9
TEST(InLogicUpgrade, AMisalignedSegmentBreaksTheRowAValidOneOutOfOrderDoesNot) {
  Slow k;
  k.c.upgrade_needed = 10;
  for (int i = 0; i < 9; ++i) ASSERT_EQ(k.good(100).action, PathAction::Store);
  k.good(900, Arrival::OutOfOrder);
  EXPECT_EQ(k.c.aligned_seen, 9u);
  k.bad(900, Arrival::OutOfOrder);
  EXPECT_EQ(k.c.aligned_seen, 0u);
  for (int i = 0; i < 9; ++i) ASSERT_EQ(k.good(100).action, PathAction::Store);
  k.bad(100);
  for (int i = 0; i < 9; ++i) ASSERT_EQ(k.good(100).action, PathAction::Store);
  EXPECT_EQ(k.good(100).action, PathAction::Fast);
}

// proves: E-9
TEST(InLogicUpgrade, AlignedSegmentsCountWhileTheBufferIsBusyButTheLastMustFindItEmpty) {
  Slow k;
  k.c.upgrade_needed = 3;
  k.facts.reassembly_empty = false;
  for (int i = 0; i < 5; ++i) ASSERT_EQ(k.good(100).action, PathAction::Store);
  k.facts.reassembly_empty = true;
  EXPECT_EQ(k.good(100).action, PathAction::Fast);
}

// Downgrades a FAST connection, and returns how many aligned segments it then needs to be FAST
// again.
std::uint32_t segments_to_upgrade(Connection& k, Instant downgraded_at) {
  k.facts.now = downgraded_at;
  while (k.fast()) k.bad(1);
  std::uint32_t n = 0;
  while (!k.fast()) {
    k.good(1);
    ++n;
  }
  return n;
}

// proves: E-9
TEST(InLogicUpgrade, NDoublesAtEachLaterDowngradeUpToTheLimit) {
  Connection k;
  k.c.config.upgrade_after = 64;
  const Instant t = Instant::from_ns(0);
  std::uint32_t expected = 64;
  for (int i = 0; i < 14; ++i) {
    EXPECT_EQ(segments_to_upgrade(k, t), expected) << i;
    expected = std::min(2 * expected, 65536u);
  }
  EXPECT_EQ(expected, 65536u);
}

// proves: E-9
TEST(InLogicUpgrade, NIsHalvedPerMinuteSpentFast) {
  Connection k;
  k.c.config.upgrade_after = 64;
  Instant t = Instant::from_ns(0);
  for (const std::uint32_t n : {64u, 128u, 256u, 512u}) EXPECT_EQ(segments_to_upgrade(k, t), n);
  t = t + Duration::s(2 * 60 + 59);  // 512 -> 128, doubled
  EXPECT_EQ(segments_to_upgrade(k, t), 256u);
  t = t + Duration::s(100 * 60 * 60);  // never below the configured value
  EXPECT_EQ(segments_to_upgrade(k, t), 128u);
}

// proves: R-56, L-8
TEST(InLogicUpgrade, FastSlowFastSlowWithNOne) {
  Connection k;
  k.c.config.upgrade_after = 1;
  EXPECT_EQ(segments_to_upgrade(k, Instant::from_ns(0)), 1u);
  EXPECT_EQ(k.c.recovery_attempts, 0u) << "an upgraded connection starts fresh";
  EXPECT_EQ(segments_to_upgrade(k, Instant::from_ns(0)), 2u);
  EXPECT_EQ(k.c.recovery_attempts, 0u);
  EXPECT_TRUE(k.fast());
  // The full number of attempts is available again.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(k.bad(9).action, PathAction::Drop);
  EXPECT_EQ(k.bad(9).action, PathAction::Downgrade);
}

}  // namespace
}  // namespace urnic::fastpath
