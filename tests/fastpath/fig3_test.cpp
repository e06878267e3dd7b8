// Fig 3 by row (T1..T10), by case (A..E) and with section 4, from bytes to decision.
#include "fastpath/fig3.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "fastpath/in_logic.h"
#include "mpa/builder.h"
#include "tests/fastpath/fpdu_maker.h"

namespace urnic::fastpath {
namespace {

using mpa::Policy;
using tcp::Arrival;
using tcp::Seq;
using testing::append;
using testing::Bytes;
using testing::random_bytes;

// Bytes of a stream with markers, from grid position `pos` on, and its segments.
struct Segment {
  explicit Segment(std::uint32_t at, Policy p = Policy::Markers) : pos(at), policy(p) {}
  Segment& fpdu(std::size_t ulpdu) {
    const auto n = static_cast<std::uint32_t>(ulpdu);
    const auto here = pos + static_cast<std::uint32_t>(bytes.size());
    Bytes f(mpa::framed_size(policy, here, n));
    const Bytes u = random_bytes(rng, ulpdu);
    EXPECT_EQ(mpa::build_framed(f.data(), policy, here, u, {}, true).len, f.size());
    starts.push_back(static_cast<std::uint32_t>(bytes.size()));
    append(bytes, f);
    return *this;
  }
  Segment& flip(std::size_t at) {
    bytes[at] ^= 0x20;
    return *this;
  }
  // Sets the first marker of the segment to `distance`.
  Segment& marker(std::uint16_t distance, std::uint16_t reserved = 0) {
    const std::uint32_t at = mpa::to_marker(pos);
    store_be16(bytes.data() + at, reserved);
    store_be16(bytes.data() + at + 2, distance);
    return *this;
  }
  Segment& drop_tail(std::size_t n) {
    bytes.resize(bytes.size() - n);
    return *this;
  }
  Validation validation() const {
    Validation v;
    if (policy == Policy::ModifiedLength) {
      validate_modified(bytes, v);
    } else {
      validate_marked(bytes, pos, v);
    }
    check_markers(policy, bytes, pos, v);
    return v;
  }

  Rng rng{42};
  std::uint32_t pos;
  Policy policy;
  Bytes bytes;
  std::vector<std::uint32_t> starts;
};

struct Fig3 {
  explicit Fig3(std::uint32_t max = 0) {
    c.config.variant = InLogicVariant::Fig3;
    c.config.max_recovery_attempts = max;
    c.config.max_same_segment = 0;  // R-31 is tested without E-8
    c.config.upgrade_after = c.upgrade_needed = 1;
    c.startup = false;
  }
  // By default out of order and without a neighbour: Cases B to E.
  PathDecision arrive(const Segment& s, std::uint32_t sn = 1000, Arrival a = Arrival::OutOfOrder,
                      bool known_end = false) {
    const Validation v = s.validation();
    SegmentFacts f;
    f.arrival = a;
    f.sn = Seq(sn);
    f.at_rcv_nxt = a == Arrival::InOrder;
    f.validation = &v;
    f.payload = static_cast<std::uint32_t>(s.bytes.size());
    f.header = header_case(known_end || a == Arrival::InOrder, s.bytes, s.pos, v);
    const PathDecision verdict = decide(c, f);
    apply(c, verdict, f);
    return verdict;
  }
  PathDecision in_order(const Segment& s, std::uint32_t sn = 1000) {
    return arrive(s, sn, Arrival::InOrder);
  }
  bool fast() const { return c.type == ConnectionType::Fast; }
  ConnectionContext c;
};

void expect(const PathDecision& v, Row row, PathAction action, Reason reason) {
  EXPECT_EQ(row_name(v.row), row_name(row));
  EXPECT_EQ(v.action, action);
  EXPECT_EQ(reason_name(v.reason), reason_name(reason));
}

// ---- the five cases (Fig 1C)

// An invalid segment whose first marker is `at` bytes from its start.
Segment invalid_with_marker(std::uint32_t at) {
  Segment s(512 - at);
  s.fpdu(900).flip(600);
  return s;
}

TEST(Fig3Case, A_AKnownFrameEndDecidesWhateverTheMarkersHold) {
  const Segment s = invalid_with_marker(100).marker(8);
  EXPECT_EQ(header_case(true, s.bytes, s.pos, s.validation()), HeaderCase::A);
}

TEST(Fig3Case, B_TheFirstMarkerPointsAtTheStart) {
  for (const std::uint32_t at : {0u, 4u, 100u, 508u}) {
    const Segment s = invalid_with_marker(at);
    EXPECT_EQ(header_case(false, s.bytes, s.pos, s.validation()), HeaderCase::B) << at;
  }
}

TEST(Fig3Case, C_TheMarkerPointsOutside) {
  for (const std::uint32_t at : {0u, 4u, 100u, 508u}) {
    const Segment s = invalid_with_marker(at).marker(static_cast<std::uint16_t>(at + 4));
    EXPECT_EQ(header_case(false, s.bytes, s.pos, s.validation()), HeaderCase::C) << at;
  }
}

TEST(Fig3Case, C_AnInvalidMarkerCountsAsPointingOutside) {
  const Segment reserved = invalid_with_marker(100).marker(100, 1);
  EXPECT_EQ(header_case(false, reserved.bytes, reserved.pos, reserved.validation()), HeaderCase::C);
  const Segment odd = invalid_with_marker(100).marker(101);
  EXPECT_EQ(header_case(false, odd.bytes, odd.pos, odd.validation()), HeaderCase::C);
}

TEST(Fig3Case, D_TheMarkerPointsInside) {
  for (const std::uint16_t distance : {std::uint16_t{0}, std::uint16_t{4}, std::uint16_t{96}}) {
    const Segment s = invalid_with_marker(100).marker(distance);
    EXPECT_EQ(header_case(false, s.bytes, s.pos, s.validation()), HeaderCase::D) << distance;
  }
}

TEST(Fig3Case, E_NoMarkerInTheSegmentOrOnlyAfterTheFirstFrame_Q9) {
  Segment none(8);
  none.fpdu(300).flip(40);
  EXPECT_EQ(header_case(false, none.bytes, none.pos, none.validation()), HeaderCase::E);
  Segment behind(200);  // the marker is 312 bytes in, in the second frame
  behind.fpdu(100).fpdu(700).flip(40);
  EXPECT_EQ(header_case(false, behind.bytes, behind.pos, behind.validation()), HeaderCase::E);
}

// ---- the table, row by row, section 4 off

// proves: R-11, T-1
TEST(Fig3, ASlowSegmentIsStored) {
  Fig3 k;
  k.c.type = k.c.config.initiated_as = ConnectionType::Slow;
  for (const bool bad : {false, true}) {
    Segment s(16);
    s.fpdu(400);
    if (bad) s.flip(9);
    expect(k.in_order(s), Row::T1, PathAction::Store, Reason::Slow);
    EXPECT_FALSE(k.fast());
  }
}

// proves: R-12, T-2
TEST(Fig3, AFirstFrameLongerThanTheSegmentDowngrades) {
  for (const Arrival a : {Arrival::InOrder, Arrival::OutOfOrder}) {
    Fig3 k;
    Segment s(16);
    s.fpdu(900).drop_tail(8);
    expect(k.arrive(s, 1000, a), Row::T2, PathAction::Downgrade, Reason::TooLong);
    EXPECT_FALSE(k.fast());
  }
}

// proves: R-13, T-3
TEST(Fig3, OneValidFrameIsCutThrough) {
  for (const std::uint32_t pos : {0u, 4u, 500u, 508u, 1024u}) {
    for (const Arrival a : {Arrival::InOrder, Arrival::OutOfOrder}) {
      Fig3 k;
      Segment s(pos);
      s.fpdu(1300);
      expect(k.arrive(s, 1000, a), Row::T3, PathAction::Fast, Reason::Aligned);
    }
  }
}

// proves: R-14, T-4
TEST(Fig3, InvalidAtAKnownFrameEndIsDroppedAndNotCounted_Q4) {
  Fig3 k;
  Segment s(8);
  s.fpdu(300).flip(100);
  for (int i = 0; i < 100; ++i) {
    expect(k.in_order(s), Row::T4, PathAction::Drop, Reason::CrcCaseA);
    expect(k.arrive(s, 2000, Arrival::OutOfOrder, true), Row::T4, PathAction::Drop,
           Reason::CrcCaseA);
  }
  EXPECT_TRUE(k.fast()) << "dropping it for ever cannot deadlock: it is corruption";
  EXPECT_EQ(k.c.recovery_attempts, 0u);
}

// proves: R-15, T-5
TEST(Fig3, InvalidWithAMarkerThatPointsAtItsStartIsDropped) {
  Fig3 k;
  for (int i = 0; i < 100; ++i) {
    expect(k.arrive(invalid_with_marker(100)), Row::T5, PathAction::Drop, Reason::CrcCaseB);
  }
  EXPECT_TRUE(k.fast());
}

// proves: R-16, T-6
TEST(Fig3, CaseC_Downgrades) {
  Fig3 k;
  expect(k.arrive(invalid_with_marker(100).marker(104)), Row::T6, PathAction::Downgrade,
         Reason::CrcFirst);
  EXPECT_FALSE(k.fast());
}

// proves: R-17, T-6
TEST(Fig3, CaseD_Downgrades) {
  Fig3 k;
  expect(k.arrive(invalid_with_marker(100).marker(96)), Row::T6, PathAction::Downgrade,
         Reason::CrcFirst);
}

// proves: R-18, T-6
TEST(Fig3, CaseE_Downgrades) {
  Fig3 k;
  Segment s(8);
  s.fpdu(300).flip(100);
  expect(k.arrive(s), Row::T6, PathAction::Downgrade, Reason::CrcFirst);
}

// proves: R-19, T-7
TEST(Fig3, SeveralValidFramesAreCutThrough) {
  Fig3 k;
  Segment s(300);
  s.fpdu(100).fpdu(0).fpdu(399).fpdu(700).fpdu(33);
  expect(k.in_order(s), Row::T7, PathAction::Fast, Reason::Aligned);
}

// proves: R-20, T-8
TEST(Fig3, AnInvalidFirstFrameIsTreatedAsIfItWereAlone) {
  const auto several = [](std::uint32_t at) {
    Segment s(512 - at);
    s.fpdu(400).fpdu(500);
    s.flip(200);
    return s;
  };
  Fig3 a;
  expect(a.in_order(several(100)), Row::T8, PathAction::Drop, Reason::CrcCaseA);
  Fig3 b;
  expect(b.arrive(several(100)), Row::T8, PathAction::Drop, Reason::CrcCaseB);
  Fig3 c;
  expect(c.arrive(several(100).marker(104)), Row::T8, PathAction::Downgrade, Reason::CrcFirst);
  Fig3 d;
  expect(d.arrive(several(100).marker(4)), Row::T8, PathAction::Downgrade, Reason::CrcFirst);
  Fig3 e;
  expect(e.arrive(several(500)), Row::T8, PathAction::Downgrade, Reason::CrcFirst);
  EXPECT_TRUE(a.fast() && b.fast());
  EXPECT_FALSE(c.fast() || d.fast() || e.fast());
}

// proves, T-9
TEST(Fig3, AMiddleOrLastInvalidFrameDropsTheWholeSegment) {
  for (const std::size_t bad : {1u, 2u, 3u}) {
    for (const Arrival a : {Arrival::InOrder, Arrival::OutOfOrder}) {
      Fig3 k;
      Segment s(480);
      s.fpdu(100).fpdu(200).fpdu(300).fpdu(400);
      s.flip(s.starts[bad] + 40);
      expect(k.arrive(s, 1000, a), Row::T9, PathAction::Drop, Reason::CrcLater);
      EXPECT_TRUE(k.fast());
      EXPECT_EQ(k.c.recovery_attempts, 0u) << "Q-4";
    }
  }
}

// proves: R-23, T-10
TEST(Fig3, ALastFrameTooLongDowngrades) {
  Fig3 k;
  Segment s(480);
  s.fpdu(100).fpdu(200).fpdu(300).drop_tail(4);
  expect(k.in_order(s), Row::T10, PathAction::Downgrade, Reason::TooLongLast);
}

// proves: R-24
TEST(Fig3, TheFirstErrorDecides) {
  Fig3 k;
  Segment s(480);
  s.fpdu(100).fpdu(200).fpdu(300).drop_tail(4);
  s.flip(s.starts[1] + 40);
  expect(k.in_order(s), Row::T9, PathAction::Drop, Reason::CrcLater);
}

// proves: T-6
TEST(Fig3, ACorrectCrcWithAWrongMarkerPointerIsNotAFrame) {
  Segment s(412);
  s.fpdu(400).marker(40);  // the first marker is 100 bytes in
  store_le32(s.bytes.data() + s.bytes.size() - 4,
             crc32c(ByteView(s.bytes).first(s.bytes.size() - 4)));
  Fig3 alone;
  expect(alone.arrive(s), Row::T6, PathAction::Downgrade, Reason::MarkerElsewhere);
  Fig3 limited(3);
  expect(limited.in_order(s), Row::T6, PathAction::Drop, Reason::MarkerElsewhere);
  EXPECT_EQ(limited.c.recovery_attempts, 1u);
}

// proves: R-26
TEST(Fig3, AGoodRetransmissionOfADroppedSegmentIsCutThrough) {
  Fig3 k;
  Segment s(100);
  s.fpdu(800);
  Segment bad = s;
  bad.flip(300);
  expect(k.in_order(bad), Row::T4, PathAction::Drop, Reason::CrcCaseA);
  expect(k.in_order(s), Row::T3, PathAction::Fast, Reason::Aligned);
}

TEST(Fig3, Q11_AnOverlapWithItsSeamInsideAFrameIsAsT2) {
  Segment s(100);
  s.fpdu(800);
  const Validation v = s.validation();
  SegmentFacts f;
  f.arrival = Arrival::Overlap;
  f.validation = &v;
  f.payload = static_cast<std::uint32_t>(s.bytes.size());
  Fig3 k;
  EXPECT_EQ(decide(k.c, f).action, PathAction::Downgrade);
  EXPECT_EQ(decide(k.c, f).reason, Reason::Seam);
  k.c.config.max_recovery_attempts = 2;
  EXPECT_EQ(decide(k.c, f).action, PathAction::Drop);
  f.seam_on_boundary = true;
  EXPECT_EQ(decide(k.c, f).action, PathAction::Fast);
}

// proves: R-7
TEST(Fig3, OutOfOrderIsPlacedEvenInStoreMode) {
  Fig3 k;
  k.c.config.place_out_of_order = false;  // ooo_without_markers = store
  Segment s(100);
  s.fpdu(800);
  EXPECT_EQ(k.arrive(s).action, PathAction::Fast);
}

// ---- section 4

// proves
TEST(Fig3Limited, TheRowsWithADiamondAreDroppedExactlyMaxTimes) {
  Segment too_long(16), too_long_last(480), no_marker(8);
  too_long.fpdu(900).drop_tail(8);
  too_long_last.fpdu(100).fpdu(300).drop_tail(4);
  no_marker.fpdu(300).flip(100);
  for (const std::uint32_t max : {1u, 2u, 7u}) {
    for (const Segment* s : {&too_long, &too_long_last, &no_marker}) {  // S5 YES, S13 NO, S10 NO
      Fig3 k(max);
      for (std::uint32_t i = 1; i <= max; ++i) {
        ASSERT_EQ(k.arrive(*s).action, PathAction::Drop);
        ASSERT_EQ(k.c.recovery_attempts, i);
        ASSERT_TRUE(k.fast());
      }
      const PathDecision v = k.arrive(*s);
      EXPECT_EQ(v.action, PathAction::Downgrade);
      EXPECT_EQ(v.reason, Reason::RecoveryExhausted);
      EXPECT_EQ(k.c.recovery_attempts, 0u);
    }
  }
}

// proves: R-43
TEST(Fig3Limited, RepairedCorruptionInCasesCDEStaysFast) {
  Segment no_marker(8), repaired(8);
  no_marker.fpdu(300).flip(100);
  repaired.fpdu(300);
  for (const Segment& bad : {invalid_with_marker(100).marker(104),  // C
                             invalid_with_marker(100).marker(96),   // D
                             no_marker}) {                          // E
    Fig3 k(3);
    for (std::uint32_t i = 1; i <= 3; ++i) {
      expect(k.arrive(bad), Row::T6, PathAction::Drop, Reason::CrcFirst);
      EXPECT_EQ(k.c.recovery_attempts, i);
    }
    EXPECT_EQ(k.arrive(repaired).action, PathAction::Fast);
    EXPECT_TRUE(k.fast());
  }
}

// proves
TEST(Fig3Limited, OnlyAnInOrderSegmentBeyondTheRecoveryEndsIt) {
  Segment bad(16), good(16);
  bad.fpdu(900).drop_tail(8);
  good.fpdu(300);
  for (const std::uint32_t base : {1000u, 0xffffff00u}) {
    Fig3 k(10);
    k.arrive(bad, base + 500);
    k.in_order(bad, base + 100);
    EXPECT_EQ(k.c.last_recovery_sn, Seq(base + 500));
    k.arrive(good, base + 900);
    EXPECT_EQ(k.c.recovery_attempts, 2u) << "R-37";
    k.in_order(good, base + 100);
    k.in_order(good, base + 500);
    EXPECT_EQ(k.c.recovery_attempts, 2u) << "R-36";
    k.in_order(good, base + 600);
    EXPECT_EQ(k.c.recovery_attempts, 0u) << "R-35";
  }
}

// proves
TEST(Fig3Limited, ACorruptSegmentBeyondTheRecoveryEndsIt) {
  Segment bad(16), corrupt(16);
  bad.fpdu(900).drop_tail(8);
  corrupt.fpdu(300).flip(50);
  Fig3 k(10);
  k.in_order(bad, 100);
  EXPECT_EQ(k.in_order(corrupt, 100).row, Row::T4);
  EXPECT_EQ(k.c.recovery_attempts, 1u);
  k.in_order(corrupt, 101);
  EXPECT_EQ(k.c.recovery_attempts, 0u);
  k.in_order(bad, 200);
  EXPECT_EQ(k.in_order(bad, 300).reset_recovery, true) << "R-41: a new recovery";
  EXPECT_EQ(k.c.recovery_attempts, 1u);
}

// proves: R-32
TEST(Fig3Limited, MaxZeroIsFig3Alone) {
  Segment bad(16);
  bad.fpdu(900).drop_tail(8);
  Fig3 k(0);
  const PathDecision v = k.in_order(bad);
  EXPECT_EQ(v.action, PathAction::Downgrade);
  EXPECT_EQ(v.reason, Reason::TooLong);
}

// proves: E-8
TEST(Fig3Limited, TheSegmentAtRcvNxtIsRefusedAtMostMaxSameSegmentTimes) {
  Segment bad(16);
  bad.fpdu(900).drop_tail(8);
  Fig3 k(32);
  k.c.config.max_same_segment = 4;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(k.in_order(bad).action, PathAction::Drop);
  EXPECT_EQ(k.in_order(bad).reason, Reason::SameSegment);
  EXPECT_FALSE(k.fast());
}

// ---- Fig 6

// proves
TEST(Fig3, AnAlignedSegmentUpgradesAMisalignedOneDoesNot) {
  Segment bad(16), good(16);
  bad.fpdu(900).drop_tail(8);
  good.fpdu(300);
  Fig3 k;
  k.in_order(bad);
  ASSERT_FALSE(k.fast());
  EXPECT_EQ(k.in_order(bad).action, PathAction::Store);
  const PathDecision v = k.in_order(good);
  EXPECT_EQ(v.action, PathAction::Fast);
  EXPECT_EQ(v.reason, Reason::Upgrade);
  EXPECT_TRUE(k.fast());
}

// ---- consistency of the table, over all possible segments

class Fig3Policies : public ::testing::TestWithParam<Policy> {};
INSTANTIATE_TEST_SUITE_P(Framing, Fig3Policies,
                         ::testing::Values(Policy::Markers, Policy::AbsoluteMarkers,
                                           Policy::ModifiedLength),
                         [](const auto& p) {
                           std::string name(mpa::policy_name(p.param));
                           std::erase(name, '-');
                           return name;
                         });

// proves: R-4
TEST_P(Fig3Policies, OnlyWholeValidAlignedFramesAreCutThrough) {
  std::vector<int> rows(11);
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Segment s(0, GetParam());
    s.rng = Rng(seed);
    s.pos = static_cast<std::uint32_t>(s.rng.below(256)) * 4;
    const std::uint64_t frames = s.rng.between(1, 4);
    for (std::uint64_t i = 0; i < frames; ++i) s.fpdu(s.rng.below(600));
    const bool corrupt = s.rng.chance(0.3), cut = s.rng.chance(0.3), shift = s.rng.chance(0.2);
    if (corrupt) s.flip(s.rng.below(s.bytes.size()));
    if (cut) s.drop_tail(s.rng.between(1, s.bytes.size() - 1));
    if (shift) {
      const auto n = static_cast<std::uint32_t>(s.rng.below(s.bytes.size()));
      s.bytes.erase(s.bytes.begin(), s.bytes.begin() + n);
      s.pos += n;
    }
    if (s.bytes.empty()) continue;
    const Arrival a = s.rng.chance(0.5) && !shift ? Arrival::InOrder : Arrival::OutOfOrder;
    Fig3 k(static_cast<std::uint32_t>(s.rng.below(2)));
    const PathDecision v = k.arrive(s, 1000, a);
    ++rows[static_cast<std::size_t>(v.row)];
    if (v.action == PathAction::Fast) {
      EXPECT_FALSE(corrupt && !cut && !shift);
      // Every byte lies in a frame that is valid on its own.
      std::uint32_t at = 0;
      while (at < s.bytes.size()) {
        const ByteView rest = ByteView(s.bytes).subspan(at);
        const auto shape = mpa::frame_shape(GetParam(), rest, s.pos + at);
        ASSERT_TRUE(shape && shape->size <= rest.size());
        ASSERT_EQ(mpa::check_framed(GetParam(), rest.first(shape->size), s.pos + at, true),
                  mpa::MarkedFpdu::Good);
        at += shape->size;
      }
    }
    if (!corrupt && !cut && !shift) {
      EXPECT_EQ(v.action, PathAction::Fast);
    }
  }
  for (std::size_t i = 2; i <= 10; ++i) EXPECT_GT(rows[i], 0) << "T" << i;
}

}  // namespace
}  // namespace urnic::fastpath
