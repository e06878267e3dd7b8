#include "tcp/hystart.h"

#include <gtest/gtest.h>

#include "tcp/congestion.h"

namespace urnic::tcp {
namespace {

struct Flow {
  HyStart h;
  StreamOffset una;
  HyStartSays said = HyStartSays::Grow;
  Instant now = Instant::from_ns(1'000'000'000);
  std::uint32_t segments = 100;

  // A round of `acks` ACKs whose round trips all take `ms`, `gap` apart.
  HyStartSays round(double ms, int acks = 10, Duration gap = Duration::zero()) {
    const StreamOffset nxt = una + static_cast<std::uint64_t>(acks) * 1000;
    for (int i = 0; i < acks; ++i) {
      said = hystart_on_ack(h, una + 1000, nxt, Duration::us(static_cast<std::int64_t>(ms * 1000)),
                            now, segments);
      if (said == HyStartSays::EndSlowStart) return said;
      una += 1000;
      now = now + gap;
    }
    return said;
  }
};

TEST(HyStart, SteadyRoundTripsGrow_RFC9406_4_2) {
  Flow f;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(f.round(10), HyStartSays::Grow);
}

TEST(HyStart, ALongerRoundTripSlowsDown_RFC9406_4_2) {
  Flow f;
  f.round(40);
  EXPECT_EQ(f.round(44), HyStartSays::Grow) << "an eighth, 5 ms, is what it takes";
  EXPECT_EQ(f.round(50), HyStartSays::GrowQuarter);
  Flow fast;
  fast.round(1);
  EXPECT_EQ(fast.round(4.9), HyStartSays::Grow) << "4 ms at least";
  EXPECT_EQ(fast.round(9), HyStartSays::GrowQuarter);
}

TEST(HyStart, FewSamplesDecideNothing_RFC9406_4_2) {
  Flow f;
  f.round(10);
  EXPECT_EQ(f.round(100, 7), HyStartSays::Grow);
}

TEST(HyStart, AFalseAlarmDoesNotEndSlowStart_RFC9406_4_2) {
  Flow f;
  f.round(10);
  EXPECT_EQ(f.round(20), HyStartSays::GrowQuarter);
  EXPECT_EQ(f.round(12), HyStartSays::Grow);
}

TEST(HyStart, FiveRoundsEndSlowStart_RFC9406_4_2) {
  Flow f;
  f.round(10);
  int rounds = 0;
  while (f.round(20) != HyStartSays::EndSlowStart && rounds < 20) ++rounds;
  EXPECT_EQ(rounds, 6) << "the one that began it, and five more";
}

TEST(HyStart, ATrainOfHalfARoundTripSlowsDown_HaRhee2011_4_1) {
  Flow f;
  f.round(10);
  f.now = f.now + Duration::ms(10);
  EXPECT_EQ(f.round(10, 49, Duration::us(100)), HyStartSays::Grow) << "4.8 ms of 10";
  f.now = f.now + Duration::ms(5);
  EXPECT_EQ(f.round(10, 60, Duration::us(100)), HyStartSays::GrowQuarter);
  EXPECT_EQ(f.round(9), HyStartSays::GrowQuarter) << "no blip";
  EXPECT_EQ(f.round(10), HyStartSays::EndSlowStart) << "the rest of its round and one more";
}

TEST(HyStart, ATrainAndALongerRoundTripEndSlowStart) {
  for (const bool train_first : {true, false}) {
    Flow f;
    f.round(10);
    if (train_first) {
      EXPECT_EQ(f.round(10, 60, Duration::us(100)), HyStartSays::GrowQuarter);
      EXPECT_EQ(f.round(14), HyStartSays::EndSlowStart);
    } else {
      EXPECT_EQ(f.round(14), HyStartSays::GrowQuarter);
      EXPECT_EQ(f.round(14, 60, Duration::us(100)), HyStartSays::EndSlowStart);
    }
  }
}

TEST(HyStart, AGapBreaksTheTrain_HaRhee2011_4_1) {
  Flow f;
  f.round(10);
  EXPECT_EQ(f.round(10, 20, Duration::us(2100)), HyStartSays::Grow);
}

TEST(HyStart, AFewSegmentsAreNotATrain) {
  Flow f;
  f.segments = 15;
  f.round(10);
  EXPECT_EQ(f.round(10, 60, Duration::us(100)), HyStartSays::Grow);
}

TEST(HyStart, TheWindowGrowsByAQuarterThenNotAtAll) {
  Config config;
  config.slow_start_segments = 1;
  config.hystart = true;
  Congestion c;
  cc_open(c, config, 1000, false);
  c.used = c.cwnd = 100'000;
  c.hystart.conservative_rounds = 1;
  c.hystart.baseline_us = 20'000;
  const StreamOffset una(1000), nxt(101'000), more(101'001);
  c.hystart.round_end = nxt;
  cc_acked(c, config, 1000, {Instant{}, Duration::ms(20), Duration::ms(20), una, nxt});
  EXPECT_EQ(c.cwnd, 100'250u);
  c.hystart.conservative_rounds = 6;
  cc_acked(c, config, 1000, {Instant{}, Duration::ms(20), Duration::ms(20), more, more});
  EXPECT_EQ(c.ssthresh, 100'250u);
  // One ACK for many segments counts for eight (RFC 9406 4.3); in slow start alone it counts for
  // one.
  for (const bool watched : {true, false}) {
    config.hystart = watched;
    Congestion many;
    cc_open(many, config, 1000, false);
    many.used = many.cwnd;
    const std::uint32_t before = many.cwnd;
    cc_acked(many, config, 12'000, {Instant{}, Duration::ms(20), Duration::ms(20), una, nxt});
    EXPECT_EQ(many.cwnd - before, watched ? 8000u : 1000u);
  }
  config.hystart = true;
  // Without SACK, a train ends slow start at once.
  for (const bool sack : {true, false}) {
    Congestion train;
    cc_open(train, config, 1000, false);
    train.used = train.cwnd = 100'000;
    train.hystart.conservative_rounds = 1;
    train.hystart.by_train = true;
    train.hystart.round_end = nxt;
    cc_acked(train, config, 1000, {Instant{}, Duration::ms(20), Duration::ms(20), una, nxt, sack});
    EXPECT_EQ(train.ssthresh == 100'000u, !sack);
  }
  // After the first loss, slow start has a threshold at which to end.
  c.ssthresh = 200'000;
  cc_acked(c, config, 1000, {Instant{}, Duration::ms(20), Duration::ms(20), una, nxt});
  EXPECT_EQ(c.cwnd, 101'250u);
}

}  // namespace
}  // namespace urnic::tcp
