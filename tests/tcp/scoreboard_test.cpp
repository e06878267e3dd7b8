#include "tcp/scoreboard.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"

namespace urnic::tcp {
namespace {

StreamOffset at(std::uint64_t v) {
  return StreamOffset(v);
}
Instant when(std::int64_t ms) {
  return Instant::from_ns(ms * 1000000);
}

// Five segments of 100 bytes, sent at 1..5 ms, and a FIN.
Scoreboard five(bool fin = false) {
  Scoreboard b;
  for (std::uint32_t i = 0; i < 5; ++i) {
    b.push(at(i * 100), 100, fin && i == 4, when(i + 1));
  }
  return b;
}

Delivery pop(Scoreboard& b, StreamOffset una, bool fin) {
  Delivery d;
  b.pop(una, fin, &d);
  return d;
}
std::uint32_t sack(Scoreboard& b, StreamOffset begin, StreamOffset end, bool fin) {
  Delivery d;
  const std::uint32_t fresh = b.sack(begin, end, fin, &d);
  EXPECT_EQ(d.bytes, fresh);
  return fresh;
}

TEST(Scoreboard, CumulativeAckTakesWholeSegmentsAndCutsOne) {
  Scoreboard b = five();
  const auto p = pop(b, at(250), false);
  EXPECT_EQ(p.bytes, 250u);
  EXPECT_TRUE(p.original);
  EXPECT_EQ(p.oldest_at, when(1));
  ASSERT_EQ(b.size(), 3u);
  EXPECT_EQ(b.front().begin, at(250));
  EXPECT_EQ(b.front().len, 50u);
  EXPECT_EQ(pop(b, at(250), false).bytes, 0u);
}

TEST(Scoreboard, TheFinIsAcknowledgedApart) {
  Scoreboard b = five(true);
  EXPECT_EQ(pop(b, at(500), false).bytes, 500u);
  ASSERT_EQ(b.size(), 1u);
  EXPECT_EQ(b.front().len, 0u);
  EXPECT_EQ(b.front().space(), 1u);
  EXPECT_EQ(pop(b, at(500), true).bytes, 1u);
  EXPECT_TRUE(b.empty());
}

TEST(Scoreboard, SackMarksWholeSegmentsOnly) {
  Scoreboard b = five(true);
  EXPECT_EQ(sack(b, at(150), at(350), false), 100u);
  EXPECT_TRUE(b[2].is(SentSegment::kSacked));
  EXPECT_EQ(sack(b, at(200), at(400), false), 100u);
  EXPECT_EQ(sack(b, at(400), at(500), false), 0u) << "the FIN is not covered";
  EXPECT_EQ(sack(b, at(400), at(500), true), 101u);
  EXPECT_EQ(b.sacked(), 301u);
  Scoreboard apart;
  apart.push(at(0), 100, false, when(1));
  apart.push(at(100), 0, true, when(2));
  EXPECT_EQ(sack(apart, at(0), at(100), false), 100u)
      << "a FIN in a segment of its own is not covered";
  EXPECT_EQ(sack(apart, at(100), at(100), true), 1u);
}

TEST(Scoreboard, SackedSegmentsGiveNoSample_RFC6298) {
  Scoreboard b = five();
  sack(b, at(0), at(100), false);
  b.mark_lost(1);
  b.mark_retransmitted(1, 100, when(9));
  const auto p = pop(b, at(300), false);
  EXPECT_EQ(p.bytes, 200u) << "what was SACKed had been counted before";
  EXPECT_EQ(p.oldest_at, when(3));
  Scoreboard fresh = five();
  EXPECT_FALSE(pop(fresh, at(0), false).original);
}

TEST(Scoreboard, LostRetransmittedSackedReneged) {
  Scoreboard b = five();
  b.mark_lost(0);
  b.mark_lost(0);
  EXPECT_EQ(b.lost(), 100u);
  EXPECT_EQ(b.to_resend(), 100u);
  b.mark_retransmitted(0, 100, when(7));
  EXPECT_EQ(b.to_resend(), 0u);
  EXPECT_EQ(b.retransmitted(), 100u);
  b.mark_lost_again(0);
  EXPECT_EQ(b.to_resend(), 100u);
  EXPECT_EQ(b.retransmitted(), 0u);
  EXPECT_EQ(sack(b, at(0), at(100), false), 100u);
  EXPECT_EQ(b.lost(), 0u);
  b.mark_lost(0);
  EXPECT_EQ(b.lost(), 0u) << "SACKed is not lost";
  b.renege();
  EXPECT_EQ(b.sacked(), 0u);
  EXPECT_EQ(b.to_resend(), 100u);
  b.all_lost();
  EXPECT_EQ(b.to_resend(), 500u);
}

TEST(Scoreboard, DeliveryNamesTheSegmentSentLast_RFC8985_6_2) {
  Scoreboard b = five();
  b.mark_lost(0);
  b.mark_retransmitted(0, 100, when(7));
  Delivery d;
  b.sack(at(100), at(300), false, &d);
  EXPECT_EQ(d.sent_at, when(3));
  EXPECT_EQ(d.end, at(300));
  EXPECT_FALSE(d.again);
  EXPECT_EQ(d.lowest_end, at(200));
  d = {};
  b.pop(at(100), false, &d);
  EXPECT_TRUE(d.any && d.again && !d.original);
  EXPECT_EQ(d.sent_at, when(7));
  // A segment sent too late to be the acknowledged one does not count.
  b.mark_lost(2);
  b.mark_retransmitted(2, 100, when(8));
  d = {};
  d.latest_answered_send = when(7);
  b.pop(at(400), false, &d);
  EXPECT_FALSE(d.any);
  EXPECT_EQ(d.bytes, 100u);
}

TEST(Scoreboard, RetransmissionsAreKnownInTheirOrder) {
  Scoreboard b = five();
  EXPECT_EQ(b.oldest_resent(), nullptr);
  for (const std::size_t i : {3u, 1u, 0u}) {
    b.mark_lost(i);
    b.mark_retransmitted(i, 100, when(10 - static_cast<std::int64_t>(i)));
  }
  ASSERT_NE(b.oldest_resent(), nullptr);
  EXPECT_EQ(b.oldest_resent()->begin, at(300));
  sack(b, at(300), at(400), false);
  EXPECT_EQ(b.oldest_resent()->begin, at(100));
  b.mark_lost_again(1);
  EXPECT_EQ(b.oldest_resent()->begin, at(0));
  pop(b, at(100), false);
  EXPECT_EQ(b.oldest_resent(), nullptr);
}

// proves: E-24
TEST(Scoreboard, RetransmissionMayCut) {
  Scoreboard b = five(true);
  b.mark_lost(4);
  b.mark_lost(1);
  b.mark_retransmitted(1, 60, when(8));
  ASSERT_EQ(b.size(), 6u);
  EXPECT_EQ(b[1].len, 60u);
  EXPECT_EQ(b[2].begin, at(160));
  EXPECT_EQ(b[2].len, 40u);
  EXPECT_TRUE(b[2].is(SentSegment::kLost));
  EXPECT_FALSE(b[2].is(SentSegment::kRetransmitted));
  EXPECT_EQ(b[3].begin, at(200));
  EXPECT_EQ(b.to_resend(), 40u + 101);
  b.mark_retransmitted(5, 10, when(9));
  EXPECT_FALSE(b[5].is(SentSegment::kFin)) << "the FIN stays with the tail";
  EXPECT_TRUE(b[6].is(SentSegment::kFin));
}

TEST(Scoreboard, IndexOfAnOffset) {
  const Scoreboard b = five(true);
  EXPECT_EQ(b.index_after(at(0)), 0u);
  EXPECT_EQ(b.index_after(at(99)), 0u);
  EXPECT_EQ(b.index_after(at(100)), 1u);
  EXPECT_EQ(b.index_after(at(500)), 4u) << "the FIN";
  EXPECT_EQ(b.index_after(at(501)), 5u);
}

TEST(Scoreboard, GivesMemoryBack) {
  Scoreboard b;
  EXPECT_EQ(b.capacity(), 0u);
  for (std::uint32_t i = 0; i < 1000; ++i) b.push(at(i), 1, false, when(1));
  pop(b, at(1000), false);
  EXPECT_GE(b.capacity(), 1000u);
  b.trim();
  EXPECT_EQ(b.capacity(), 0u);
}

// Compares the counters with a recount, after random operations.
TEST(Scoreboard, CountersNeverDrift) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Scoreboard b;
    std::uint64_t una = 0, nxt = 0;
    for (int i = 0; i < 500; ++i) {
      const std::size_t k = b.empty() ? 0 : rng.below(b.size());
      switch (rng.below(8)) {
        case 0:
        case 1: {
          const auto len = static_cast<std::uint32_t>(rng.between(1, 100));
          b.push(at(nxt), len, false, when(i));
          nxt += len;
          break;
        }
        case 2:
          una = rng.between(una, una + (nxt - una) / 4);
          pop(b, at(una), false);
          break;
        case 3: {
          const std::uint64_t from = rng.between(una, nxt);
          sack(b, at(from), at(rng.between(from, nxt)), false);
          break;
        }
        case 4:
          if (!b.empty()) b.mark_lost(k);
          break;
        case 5:
          if (!b.empty() && !b[k].is(SentSegment::kSacked)) {
            b.mark_retransmitted(k, static_cast<std::uint32_t>(rng.between(1, b[k].len)), when(i));
          }
          break;
        case 6:
          if (!b.empty()) b.mark_lost_again(k);
          break;
        default:
          if (rng.chance(0.1)) b.all_lost();
          if (rng.chance(0.1)) b.renege();
      }
      std::uint64_t sacked = 0, lost = 0, again = 0, todo = 0, end = una;
      for (std::size_t n = 0; n < b.size(); ++n) {
        const SentSegment& s = b[n];
        ASSERT_EQ(s.begin.value(), end);
        end = s.end().value();
        const bool l = s.is(SentSegment::kLost), r = s.is(SentSegment::kRetransmitted);
        if (s.is(SentSegment::kSacked)) {
          sacked += s.len;
          ASSERT_FALSE(l || r);
          continue;
        }
        lost += l ? s.len : 0;
        again += r ? s.len : 0;
        todo += l && !r ? s.len : 0;
      }
      ASSERT_EQ(end, nxt);
      ASSERT_EQ(b.sacked(), sacked);
      ASSERT_EQ(b.lost(), lost);
      ASSERT_EQ(b.retransmitted(), again);
      ASSERT_EQ(b.to_resend(), todo);
    }
  }
}

}  // namespace
}  // namespace urnic::tcp
