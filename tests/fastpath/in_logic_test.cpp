#include "fastpath/in_logic.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "fastpath/in_logic_connection.h"

namespace urnic::fastpath {
namespace {

using namespace in_logic_test;

class BothVariants : public ::testing::TestWithParam<InLogicVariant> {
 protected:
  Connection connection(std::uint32_t max = 3) { return Connection(GetParam(), max); }
};

INSTANTIATE_TEST_SUITE_P(Fig, BothVariants,
                         ::testing::Values(InLogicVariant::Fig9, InLogicVariant::Fig10),
                         [](const auto& which) {
                           return which.param == InLogicVariant::Fig9 ? "9" : "10";
                         });

// ---- Figs 9 and 10, row by row -----------------------------------------------------------------

struct Row {
  std::initializer_list<FrameStatus> statuses;
  PathAction action;
  Reason reason;
};

// proves: R-81
TEST_P(BothVariants, TheFourResultsLeadToFastPathOrDropNeverToADowngrade) {
  const Row rows[] = {
      {{kValid}, PathAction::Fast, Reason::Aligned},                     // case 1
      {{kInvalid}, PathAction::Drop, Reason::CrcFirst},                  // case 2
      {{kTooLong}, PathAction::Drop, Reason::TooLong},                   // case 3
      {{kValid, kValid, kValid}, PathAction::Fast, Reason::Aligned},     // case 4
      {{kValid, kInvalid}, PathAction::Drop, Reason::CrcLater},          // case 4, middle
      {{kValid, kValid, kInvalid}, PathAction::Drop, Reason::CrcLater},  // case 4, last
      {{kValid, kTooLong}, PathAction::Drop, Reason::TooLongLast},       // case 4, incomplete
      {{kValid, kValid, kValid, kTooLong}, PathAction::Drop, Reason::TooLongLast},
  };
  for (const Row& row : rows) {
    for (const Arrival arrival : {Arrival::InOrder, Arrival::OutOfOrder}) {
      Connection k = connection();
      const PathDecision v = k.arrive(1000, arrival, results(row.statuses));
      EXPECT_EQ(v.action, row.action) << reason_name(row.reason);
      EXPECT_EQ(v.reason, row.reason) << reason_name(v.reason);
      EXPECT_EQ(v.counts, row.action == PathAction::Drop);
      EXPECT_TRUE(k.fast());
      EXPECT_EQ(k.c.recovery_attempts, row.action == PathAction::Drop ? 1u : 0u);
    }
  }
}

// proves: R-82
TEST_P(BothVariants, CaseAAndCaseBAreDroppedAlikeUntilTheLimit) {
  for (const Arrival arrival : {Arrival::InOrder, Arrival::OutOfOrder}) {  // Case A, Case B
    Connection k = connection(3);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(k.bad(500, arrival).action, PathAction::Drop);
      EXPECT_TRUE(k.fast());
    }
    EXPECT_EQ(k.bad(500, arrival).action, PathAction::Downgrade);
    EXPECT_FALSE(k.fast());
  }
}

// proves, L-1, R-31, R-85
TEST_P(BothVariants, PersistentMisalignmentEndsSlowAfterExactlyMaxDrops) {
  for (const auto& statuses :
       {results({kTooLong}), results({kInvalid}), results({kValid, kTooLong})}) {
    for (const std::uint32_t max : {1u, 2u, 3u, 32u, 1000u}) {
      Connection k = connection(max);
      std::uint32_t drops = 0;
      PathDecision v;
      while ((v = k.arrive(77, Arrival::InOrder, statuses)).action == PathAction::Drop) ++drops;
      EXPECT_EQ(drops, max);
      EXPECT_EQ(v.action, PathAction::Downgrade);
      EXPECT_EQ(v.reason, Reason::RecoveryExhausted);
      EXPECT_FALSE(v.counts);
      EXPECT_FALSE(k.fast());
      EXPECT_EQ(k.c.recovery_attempts, 0u) << "the mode exists only on FAST";
    }
  }
}

TEST(InLogic, TheErrorThatReachedTheLimitIsReported) {
  Connection k(InLogicVariant::Fig9, 1);
  k.bad(10);
  const PathDecision v = k.arrive(10, Arrival::InOrder, results({kValid, kTooLong}));
  EXPECT_EQ(v.reason, Reason::RecoveryExhausted);
  EXPECT_EQ(v.error, Reason::TooLongLast);
}

// proves
TEST_P(BothVariants, ASlowConnectionStoresEverySegment) {
  Connection k = connection();
  k.c.type = ConnectionType::Slow;
  k.c.config.initiated_as = ConnectionType::Slow;
  for (const auto& v : {results({kValid}), results({kInvalid}), results({kValid, kTooLong})}) {
    for (const Arrival a : {Arrival::InOrder, Arrival::OutOfOrder, Arrival::Overlap}) {
      const PathDecision verdict = k.arrive(9, a, v);
      EXPECT_EQ(verdict.action, PathAction::Store);
      EXPECT_EQ(verdict.reason, Reason::Slow);
      EXPECT_FALSE(verdict.counts);
      EXPECT_FALSE(k.fast());
    }
  }
}

// proves: R-86
TEST_P(BothVariants, OutOfOrderTakesTheFastPathWithoutMarkers) {
  Connection k = connection();
  EXPECT_EQ(k.good(5000, Arrival::OutOfOrder).action, PathAction::Fast);
}

// proves: R-26
TEST_P(BothVariants, AGoodRetransmissionTakesTheFastPath) {
  Connection k = connection();
  EXPECT_EQ(k.bad(100).action, PathAction::Drop);
  EXPECT_EQ(k.good(100).action, PathAction::Fast);
  EXPECT_TRUE(k.fast());
}

// ---- limited retransmission attempts, Figs 4A and 4B

// proves: R-31, L-1, L-2, L-6
TEST_P(BothVariants, WorkedExample) {
  Connection k = connection(3);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(k.bad(100).action, PathAction::Drop);
    EXPECT_EQ(k.c.recovery_attempts, i);
  }
  EXPECT_EQ(k.good(100).action, PathAction::Fast);
  EXPECT_EQ(k.c.recovery_attempts, 3u) << "the good retransmission itself does not reset";
  EXPECT_EQ(k.good(200).action, PathAction::Fast);
  EXPECT_EQ(k.c.recovery_attempts, 0u);
  EXPECT_TRUE(k.fast());
}

// proves: R-32, L-7
TEST_P(BothVariants, MaxZeroDowngradesAtTheFirstError) {
  Connection k = connection(0);
  EXPECT_EQ(k.good(1).action, PathAction::Fast);
  EXPECT_EQ(k.bad(2).action, PathAction::Downgrade);
}

// proves: R-33
TEST_P(BothVariants, EveryKindOfErrorCounts) {
  Connection k = connection(3);
  EXPECT_EQ(k.arrive(1, Arrival::InOrder, results({kTooLong})).action, PathAction::Drop);
  EXPECT_EQ(k.arrive(1, Arrival::InOrder, results({kInvalid})).action, PathAction::Drop);
  EXPECT_EQ(k.arrive(1, Arrival::InOrder, results({kValid, kTooLong})).action, PathAction::Drop);
  EXPECT_EQ(k.arrive(1, Arrival::InOrder, results({kValid, kInvalid})).action,
            PathAction::Downgrade);
}

// proves: R-34, L-3
TEST_P(BothVariants, LastRecoverySnIsTheLargestOfTheRecovery) {
  Connection k = connection(10);
  k.bad(500, Arrival::OutOfOrder);
  k.bad(300);
  EXPECT_EQ(k.c.last_recovery_sn, Seq(500));
  k.good(300);
  EXPECT_EQ(k.good(400).reset_recovery, false);
  EXPECT_EQ(k.good(500).reset_recovery, false);
  EXPECT_EQ(k.c.recovery_attempts, 2u);
  EXPECT_EQ(k.good(600).reset_recovery, true);
  EXPECT_EQ(k.c.recovery_attempts, 0u);
}

// proves, L-2, L-9
TEST_P(BothVariants, OnlyAnInOrderSegmentBeyondTheRecoveryResets) {
  Connection k = connection(10);
  k.bad(300);
  k.good(900, Arrival::OutOfOrder);
  EXPECT_EQ(k.c.recovery_attempts, 1u) << "R-37: out of order proves nothing";
  k.good(300);
  EXPECT_EQ(k.c.recovery_attempts, 1u) << "R-36: equal does not reset";
  k.good(400);
  EXPECT_EQ(k.c.recovery_attempts, 0u) << "R-35";
}

// proves: R-35
TEST_P(BothVariants, AnOverlapThatBeginsAtRcvNxtIsInOrderForTheReset) {
  Connection k = connection(10);
  k.bad(300);
  k.good(300);
  k.facts.at_rcv_nxt = true;
  k.facts.seam_on_boundary = true;
  EXPECT_EQ(k.good(400, Arrival::Overlap).action, PathAction::Fast);
  EXPECT_EQ(k.c.recovery_attempts, 0u);
}

// proves: R-38
TEST_P(BothVariants, TheRulesHoldAcrossTheWrapAround) {
  Connection k = connection(10);
  k.bad(0xffffff00u);
  k.bad(0x00000100u, Arrival::OutOfOrder);
  EXPECT_EQ(k.c.last_recovery_sn, Seq(0x100));
  k.bad(0xffffff80u, Arrival::OutOfOrder);
  EXPECT_EQ(k.c.last_recovery_sn, Seq(0x100)) << "smaller, though the number is larger";
  k.good(0xffffff00u);
  k.good(0xffffff80u);
  k.good(0x00000000u);
  k.good(0x00000100u);
  EXPECT_EQ(k.c.recovery_attempts, 3u);
  k.good(0x00000180u);
  EXPECT_EQ(k.c.recovery_attempts, 0u);
}

// proves: R-39
TEST_P(BothVariants, RepairedCorruptionNeverDowngradesHoweverOften) {
  Connection k = connection(1);
  std::uint32_t sn = 0xfffe0000u;
  for (int i = 0; i < 10000; ++i) {
    ASSERT_EQ(k.bad(sn).action, PathAction::Drop) << i;
    ASSERT_EQ(k.good(sn).action, PathAction::Fast);
    ASSERT_EQ(k.good(sn + 1460).action, PathAction::Fast);
    ASSERT_EQ(k.c.recovery_attempts, 0u);
    sn += 2 * 1460;
  }
  EXPECT_TRUE(k.fast());
}

// proves: R-40, L-4
TEST_P(BothVariants, AStaleLastRecoverySnIsIgnored) {
  Connection k = connection(10);
  k.bad(100);
  k.good(100);
  k.good(200);
  ASSERT_EQ(k.c.recovery_attempts, 0u);
  // More than 2^31 bytes later, the old number would compare as larger.
  const std::uint32_t later = 100 + 0x80000010u;
  k.bad(later);
  EXPECT_EQ(k.c.last_recovery_sn, Seq(later));
  k.good(later);
  k.good(later + 100);
  EXPECT_EQ(k.c.recovery_attempts, 0u);
}

// proves: R-41, L-5
TEST(InLogic, AnErrorInOrderBeyondTheRecoveryBeginsANewOne) {
  Connection k(InLogicVariant::Fig9, 3);
  k.bad(100);
  k.bad(100);
  k.bad(100);
  k.good(100);
  const PathDecision v = k.bad(200);
  EXPECT_EQ(v.action, PathAction::Drop);
  EXPECT_TRUE(v.reset_recovery);
  EXPECT_EQ(k.c.recovery_attempts, 1u);
  EXPECT_EQ(k.c.last_recovery_sn, Seq(200));
}

// proves: R-85
TEST(InLogic, Fig10ResetsOnlyOnSegmentsThatPassed) {
  Connection k(InLogicVariant::Fig10, 3);
  k.bad(100);
  k.bad(100);
  k.good(100);
  EXPECT_FALSE(k.bad(200).reset_recovery);
  EXPECT_EQ(k.c.recovery_attempts, 3u) << "S157 lies on the YES branch of S154";
  k.good(200);
  k.good(300);
  EXPECT_EQ(k.c.recovery_attempts, 0u);
}

// ---- E-8

// proves: E-8
TEST_P(BothVariants, TheSegmentAtRcvNxtIsRefusedUpToTheLimitThenStored) {
  Connection k = connection(32);
  k.c.config.max_same_segment = 4;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(k.bad(100).action, PathAction::Drop);
  const PathDecision v = k.bad(100);
  EXPECT_EQ(v.action, PathAction::Downgrade);
  EXPECT_EQ(v.reason, Reason::SameSegment);
  EXPECT_EQ(v.error, Reason::CrcFirst);
  EXPECT_FALSE(k.fast());
  EXPECT_EQ(k.c.same_count, 0u);
}

// proves: E-8
TEST_P(BothVariants, OutOfOrderRefusalsNeitherCountNorRestartTheCount) {
  Connection k = connection(32);
  k.c.config.max_same_segment = 4;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(k.bad(900, Arrival::OutOfOrder).action, PathAction::Drop);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(k.bad(100).action, PathAction::Drop);
    EXPECT_EQ(k.bad(900, Arrival::OutOfOrder).action, PathAction::Drop);
    EXPECT_EQ(k.good(500, Arrival::OutOfOrder).action, PathAction::Fast);
  }
  EXPECT_EQ(k.bad(100).reason, Reason::SameSegment);
}

// proves: E-8
TEST_P(BothVariants, AnAcceptedSegmentRestartsTheCountOfRefusals) {
  Connection k = connection(1000);
  k.c.config.max_same_segment = 4;
  for (std::uint32_t sn = 100; sn < 2000; sn += 100) {
    for (int i = 0; i < 4; ++i) ASSERT_EQ(k.bad(sn).action, PathAction::Drop);
    ASSERT_EQ(k.good(sn).action, PathAction::Fast);
    ASSERT_EQ(k.c.same_count, 0u);
  }
}

// proves: E-8
TEST_P(BothVariants, AnAdvanceOfRcvNxtRestartsTheCountOfRefusals) {
  Connection k = connection(1000);
  k.c.config.max_same_segment = 4;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(k.bad(100).action, PathAction::Drop);
  // A segment that begins below RCV.NXT advances it.
  k.facts.seam_on_boundary = true;
  ASSERT_EQ(k.good(50, Arrival::Overlap).action, PathAction::Fast);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(k.bad(200).action, PathAction::Drop) << i;
  EXPECT_EQ(k.bad(200).reason, Reason::SameSegment);
}

// proves: E-8
TEST_P(BothVariants, AnOverlapAtRcvNxtCountsToo) {
  Connection k = connection(32);
  k.c.config.max_same_segment = 4;
  k.facts.at_rcv_nxt = true;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(k.bad(100, Arrival::Overlap).action, PathAction::Drop);
  EXPECT_EQ(k.bad(100, Arrival::Overlap).reason, Reason::SameSegment);
}

// proves: E-8
TEST_P(BothVariants, FpdusCutInTwoDowngradeAfterTheLimit) {
  Connection k = connection(32);
  k.c.config.max_cut_frames = 2;
  k.both_halves_are_dropped(2000);
  EXPECT_EQ(k.good(556).action, PathAction::Fast) << "joined again by the retransmission";
  EXPECT_EQ(k.good(2004).action, PathAction::Fast);
  EXPECT_EQ(k.c.recovery_attempts, 0u);
  EXPECT_EQ(k.first_half(9000).action, PathAction::Drop);
  const PathDecision v = k.second_half(9000);
  EXPECT_EQ(v.action, PathAction::Downgrade);
  EXPECT_EQ(v.reason, Reason::CutFrames);
  EXPECT_EQ(k.c.cuts, 0u);
  EXPECT_FALSE(k.fast());
  EXPECT_EQ(k.c.upgrade_needed, k.c.config.upgrade_after * kHabit) << "it will cut again";
}

// proves: E-9
TEST_P(BothVariants, ALaterDowngradeForCutsDoublesTheWait) {
  Connection k = connection(32);
  k.c.config.max_cut_frames = 1;
  std::uint32_t expected = k.c.config.upgrade_after * kHabit;
  for (int i = 0; i < 8; ++i, expected = std::min(2 * expected, kMaxUpgradeAfter)) {
    k.c.type = ConnectionType::Fast;
    k.first_half(2000);
    EXPECT_EQ(k.second_half(2000).reason, Reason::CutFrames);
    EXPECT_EQ(k.c.upgrade_needed, expected) << i;
  }
}

// proves: E-8
TEST_P(BothVariants, CutsHalfTheSequenceSpaceApartDoNotAddUp) {
  Connection k = connection(1000);
  k.c.config.max_cut_frames = 2;
  for (const std::uint32_t cut : {0u, 0x80000000u, 0u}) k.both_halves_are_dropped(cut);
  EXPECT_TRUE(k.fast());
}

// proves: E-8
TEST_P(BothVariants, TheSameCutAgainCountsAgain) {
  Connection k = connection(32);
  k.c.config.max_cut_frames = 3;
  for (int i = 0; i < 2; ++i) {
    k.both_halves_are_dropped(2000);
    EXPECT_EQ(k.second_half(2000).action, PathAction::Drop) << "one beginning, one cut";
  }
  EXPECT_EQ(k.first_half(2000).action, PathAction::Drop);
  EXPECT_EQ(k.second_half(2000).reason, Reason::CutFrames);
}

// proves: E-8
TEST_P(BothVariants, TheSecondHalfOfACutDoesNotBeginAnother) {
  Connection k = connection(32);
  k.c.config.max_cut_frames = 2;
  k.both_halves_are_dropped(2000);
  EXPECT_EQ(k.second_half(2004).action, PathAction::Drop) << "begins where the second half ended";
  EXPECT_TRUE(k.fast());
}

// proves: E-8
TEST_P(BothVariants, CorruptedLengthsDoNotCountAsCuts) {
  Connection k = connection(1000);
  k.c.config.max_cut_frames = 1;
  for (std::uint32_t sn = 10000; sn < 50000; sn += 2000) {
    EXPECT_EQ(k.first_half(sn).action, PathAction::Drop);
    EXPECT_EQ(k.good(sn, Arrival::OutOfOrder).action, PathAction::Fast) << "a whole FPDU behind it";
    EXPECT_EQ(k.bad(sn + 200, Arrival::OutOfOrder).action, PathAction::Drop)
        << "not where it ended";
    EXPECT_EQ(k.good(sn - 1444).action, PathAction::Fast);
  }
  EXPECT_TRUE(k.fast());
}

// proves: E-8
TEST_P(BothVariants, CutsFarApartDoNotAddUp) {
  Connection k = connection(1000);
  k.c.config.max_cut_frames = 2;
  for (std::uint32_t cut = 0xff000000u, i = 0; i < 20; ++i, cut += kCutReach) {
    k.both_halves_are_dropped(cut);
    k.good(cut - 1444);
  }
  EXPECT_TRUE(k.fast());
}

// proves: E-8
TEST_P(BothVariants, CutsCountOnlyIfConfigured) {
  Connection k = connection(32);
  for (int i = 0; i < 15; ++i) {
    k.both_halves_are_dropped(2000);
  }
  EXPECT_EQ(k.c.cuts, 0u);
}

// proves: E-8
TEST_P(BothVariants, WithoutMaxSameSegmentOnlyTheRecoveryLimitDowngrades) {
  Connection k = connection(32);
  for (int i = 0; i < 32; ++i) ASSERT_EQ(k.bad(100).action, PathAction::Drop);
  EXPECT_EQ(k.bad(100).reason, Reason::RecoveryExhausted);
}

// ---- Q-11, E-12

TEST_P(BothVariants, Q11_AnOverlapWithTheSeamOnAFrameBoundaryTakesTheFastPath) {
  Connection k = connection();
  k.facts.seam_on_boundary = true;
  EXPECT_EQ(k.arrive(100, Arrival::Overlap, results({kValid, kValid})).action, PathAction::Fast);
}

TEST_P(BothVariants, Q11_AnyOtherSeamIsARecoveryAttempt) {
  Connection k = connection(2);
  for (int i = 0; i < 2; ++i) {
    const PathDecision v = k.good(100, Arrival::Overlap);
    EXPECT_EQ(v.action, PathAction::Drop);
    EXPECT_EQ(v.reason, Reason::Seam);
    EXPECT_TRUE(v.counts);
  }
  const PathDecision v = k.good(100, Arrival::Overlap);
  EXPECT_EQ(v.action, PathAction::Downgrade);
  EXPECT_EQ(v.error, Reason::Seam);
}

TEST_P(BothVariants, Q11_AnErrorInAnOverlapIsReportedAsThatError) {
  Connection k = connection();
  k.facts.seam_on_boundary = true;
  EXPECT_EQ(k.bad(100, Arrival::Overlap).reason, Reason::CrcFirst);
}

// proves: E-12
TEST_P(BothVariants, AChainOfFramesFromRcvNxtThatMissesABlocksEdgeDowngradesAtOnce) {
  Connection k = connection(32);
  k.facts.at_rcv_nxt = true;
  const PathDecision v = k.arrive(100, Arrival::Overlap, results({kValid, kValid}));
  EXPECT_EQ(v.action, PathAction::Downgrade);
  EXPECT_EQ(v.reason, Reason::Seam);
  EXPECT_FALSE(k.fast());
}

// proves: E-12
TEST_P(BothVariants, StoreModePlacesNothingOutOfOrderAndCountsNothing) {
  Connection k = connection(2);
  k.c.config.place_out_of_order = false;
  for (int i = 0; i < 100; ++i) {
    const PathDecision v = k.good(500, Arrival::OutOfOrder);
    ASSERT_EQ(v.action, PathAction::Keep);
    ASSERT_EQ(v.reason, Reason::OutOfOrderStore);
    ASSERT_FALSE(v.counts);
  }
  EXPECT_EQ(k.c.recovery_attempts, 0u);
  EXPECT_EQ(k.good(100).action, PathAction::Fast);
  // An error counts as an error in either mode.
  EXPECT_EQ(k.bad(500, Arrival::OutOfOrder).reason, Reason::CrcFirst);
  EXPECT_EQ(k.c.recovery_attempts, 1u);
}

TEST(InLogic, EveryReasonHasItsOwnName) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Reason::kCount); ++i) {
    const std::string_view n = reason_name(static_cast<Reason>(i));
    EXPECT_NE(n, "?");
    EXPECT_EQ(n.data()[n.size()], '\0') << "names serve as C strings";
    names.insert(n);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Reason::kCount));
}

}  // namespace
}  // namespace urnic::fastpath
