#include "tcp/congestion.h"

#include <gtest/gtest.h>

namespace urnic::tcp {
namespace {

Congestion open(std::uint32_t iw, std::uint8_t l = 1) {
  Config c;
  c.initial_window = iw;
  c.slow_start_segments = l;
  Congestion cc;
  cc_open(cc, c, 1000, false);
  return cc;
}
Config growth(std::uint8_t l) {
  Config c;
  c.slow_start_segments = l;
  return c;
}
void use(Congestion& c, std::uint32_t bytes) {
  cc_sent(c, StreamOffset(0), StreamOffset(bytes));
}

TEST(Congestion, InitialWindow_RFC6928) {
  const Config c;
  EXPECT_EQ(initial_window(c, 1460), 14600u);
  EXPECT_EQ(initial_window(c, 536), 5360u);
  EXPECT_EQ(initial_window(c, 2000), 14600u);
  EXPECT_EQ(initial_window(c, 8960), 17920u);
  Config one;
  one.initial_window = 10;
  EXPECT_EQ(initial_window(one, 1000), 1000u) << "never less than a segment";
}

TEST(Congestion, ALostSynBeginsWithOneSegment_RFC5681_3_1) {
  Congestion c;
  cc_open(c, {}, 1000, true);
  EXPECT_EQ(c.cwnd, 1000u);
  EXPECT_EQ(c.ssthresh, Congestion::kInfinite);
}

TEST(Congestion, SlowStartGrowsByAtMostLSegmentsPerAck_RFC3465) {
  for (const std::uint8_t l : {1, 2, 8}) {
    Congestion c = open(10000, l);
    use(c, 10000);
    cc_acked(c, growth(l), 500, {});
    EXPECT_EQ(c.cwnd, 10500u);
    cc_acked(c, growth(l), 9000, {});
    EXPECT_EQ(c.cwnd, 10500u + l * 1000u);
  }
}

TEST(Congestion, SlowStartEndsAtTheThreshold) {
  Congestion c = open(10000, 8);
  c.ssthresh = 12000;
  use(c, 10000);
  cc_acked(c, growth(8), 8000, {});
  EXPECT_EQ(c.cwnd, 12000u);
}

TEST(Congestion, AvoidanceAddsASegmentPerWindow_RFC5681_3_1) {
  Congestion c = open(5000);
  c.ssthresh = 5000;
  use(c, 5000);
  for (int i = 0; i < 4; ++i) cc_acked(c, growth(1), 1000, {});
  EXPECT_EQ(c.cwnd, 5000u);
  cc_acked(c, growth(1), 1000, {});
  EXPECT_EQ(c.cwnd, 6000u);
  use(c, 6000);
  for (int i = 0; i < 5; ++i) cc_acked(c, growth(1), 1000, {});
  EXPECT_EQ(c.cwnd, 6000u);
  cc_acked(c, growth(1), 1000, {});
  EXPECT_EQ(c.cwnd, 7000u);
}

TEST(Congestion, AnUnusedWindowDoesNotGrow) {
  Congestion c = open(10000);
  use(c, 4000);
  cc_acked(c, growth(1), 1000, {});
  EXPECT_EQ(c.cwnd, 10000u);
  use(c, 5000);
  cc_acked(c, growth(1), 1000, {});
  EXPECT_EQ(c.cwnd, 11000u);
  c.ssthresh = 1000;
  cc_acked(c, growth(1), 11000, {});
  EXPECT_EQ(c.cwnd, 11000u) << "avoidance wants it used in full";
}

TEST(Congestion, ReductionAndRecoveryWithoutSack_RFC5681_RFC6582) {
  Congestion c = open(10000);
  cc_reduce(c, 9000, Cut::Loss);
  EXPECT_EQ(c.ssthresh, 4500u);
  cc_enter_recovery(c, false);
  EXPECT_EQ(c.cwnd, 7500u);
  cc_inflate(c);
  EXPECT_EQ(c.cwnd, 8500u);
  cc_partial_ack(c, 3000);
  EXPECT_EQ(c.cwnd, 6500u);
  cc_partial_ack(c, 300);
  EXPECT_EQ(c.cwnd, 6200u) << "less than a segment adds none back";
  cc_exit_recovery(c, false, 2000);
  EXPECT_EQ(c.cwnd, 3000u);
  cc_exit_recovery(c, false, 9000);
  EXPECT_EQ(c.cwnd, 4500u);
}

TEST(Congestion, ThresholdIsTwoSegmentsAtLeast) {
  Congestion c = open(10000);
  cc_reduce(c, 1000, Cut::Loss);
  EXPECT_EQ(c.ssthresh, 2000u);
}

TEST(Congestion, RecoveryWithSack_RFC6675) {
  Congestion c = open(10000);
  cc_reduce(c, 10000, Cut::Loss);
  cc_enter_recovery(c, true);
  EXPECT_EQ(c.cwnd, 5000u);
  cc_exit_recovery(c, true, 1000);
  EXPECT_EQ(c.cwnd, 5000u);
}

TEST(Congestion, TimeoutAndRestart) {
  Congestion c = open(4000);
  c.cwnd = 50000;
  Config cfg;
  cfg.initial_window = 4000;
  cc_restart(c, cfg);
  EXPECT_EQ(c.cwnd, 4000u);
  cc_timeout(c);
  EXPECT_EQ(c.cwnd, 1000u);
  cc_restart(c, cfg);
  EXPECT_EQ(c.cwnd, 1000u) << "never enlarges";
}

TEST(Congestion, TheWindowIsBounded) {
  Congestion c = open(1u << 30, 255);
  use(c, 1u << 30);
  for (int i = 0; i < 100; ++i) cc_acked(c, growth(255), 1u << 20, {});
  EXPECT_EQ(c.cwnd, 1u << 30);
}

}  // namespace
}  // namespace urnic::tcp
