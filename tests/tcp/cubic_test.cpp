#include "tcp/cubic.h"

#include <gtest/gtest.h>

#include "tcp/congestion.h"

namespace urnic::tcp {
namespace {

constexpr std::uint32_t kSmss = 1000;

// A sender whose window is always full, cut once at `at` bytes.
struct Flow {
  Congestion c;
  Config config;
  Instant now = Instant::from_ns(1'000'000'000);
  Duration rtt;

  Flow(std::uint32_t at, Duration round_trip) : rtt(round_trip) {
    config.congestion = CongestionControl::Cubic;
    cc_open(c, config, kSmss, false);
    c.cwnd = at;
    cut(Cut::Loss);
  }
  void cut(Cut why) {
    cc_reduce(c, c.cwnd, why);
    c.cwnd = c.ssthresh;
  }
  void run(Duration d, bool use = true) {
    for (const Instant end = now + d; now < end; now = now + rtt) {
      // Segment by segment, as ACKs arrive. Each lets the window be filled again.
      for (std::uint32_t left = c.cwnd; left >= kSmss; left -= kSmss) {
        c.used = use ? c.cwnd : 0;
        cc_acked(c, config, kSmss, {now, rtt});
      }
    }
  }
};

TEST(Cubic, ALossLeavesSevenTenths_RFC9438_4_6) {
  Flow f(100'000, Duration::ms(100));
  EXPECT_EQ(f.c.ssthresh, 70'000u);
  f.c.cwnd = 2000;
  f.cut(Cut::Loss);
  EXPECT_EQ(f.c.ssthresh, 2000u) << "two segments at least";
}

TEST(Cubic, TheWindowFollowsTheCubicFunction_RFC9438_4_2) {
  // K = cbrt(30 / 0.4) = 4.217 s; W(t) = 0.4 (t - K)^3 + 100 segments, one round trip ahead.
  Flow f(100'000, Duration::ms(100));
  f.run(Duration::ms(2100));
  EXPECT_NEAR(f.c.cwnd, 100'000 - 0.4 * 2.017 * 2.017 * 2.017 * 1000, 1500);
  f.run(Duration::ms(2100));
  EXPECT_NEAR(f.c.cwnd, 100'000, 500) << "the plateau";
  f.run(Duration::ms(4200));
  EXPECT_NEAR(f.c.cwnd, 100'000 + 0.4 * 4.283 * 4.283 * 4.283 * 1000, 4500)
      << "beyond it; growth trails the curve";
}

TEST(Cubic, GrowsByATwentiethPerRoundTripBeforeTheFirstCut) {
  Flow f(100'000, Duration::ms(10));
  f.config.hystart = true;
  cc_open(f.c, f.config, kSmss, false);
  f.c.cwnd = f.c.ssthresh = 100'000;  // slow start was ended by a sign of congestion
  f.c.hystart.least_us = 5000;        // there is a queue
  f.run(Duration::ms(100));
  EXPECT_LE(f.c.cwnd, 111'000u);
  f.c.cwnd = 100'000;
  f.c.hystart.least_us = 9000;
  f.run(Duration::ms(100));
  EXPECT_GT(f.c.cwnd, 155'000u) << "1.05 to the tenth is 1.63";
  EXPECT_LT(f.c.cwnd, 185'000u);
  f.cut(Cut::Loss);
  const std::uint32_t after = f.c.cwnd;
  f.run(Duration::ms(100));
  EXPECT_LT(f.c.cwnd, after + 11 * kSmss);
}

TEST(Cubic, NeverSlowerThanReno_RFC9438_4_3) {
  // With such short round trips the cubic function has hardly moved: 0.529 of a segment per round
  // trip up to the old window (57 of them), then one segment each.
  Flow f(100'000, Duration::ms(1));
  f.run(Duration::ms(57));
  EXPECT_NEAR(f.c.cwnd, 100'000, 2000);
  f.run(Duration::ms(40));
  EXPECT_NEAR(f.c.cwnd, 140'000, 3000);
}

TEST(Cubic, AWindowThatFellShortLeavesRoom_RFC9438_4_7) {
  Flow f(100'000, Duration::ms(100));
  f.cut(Cut::Loss);
  EXPECT_EQ(f.c.cubic.w_max, 59'500u) << "70000 * (1 + 0.7) / 2";
  EXPECT_EQ(f.c.ssthresh, 49'000u);
}

TEST(Cubic, AvoidanceAfterATimeoutBeginsAtItsOwnPlateau_RFC9438_4_8) {
  Flow f(100'000, Duration::ms(100));
  f.cut(Cut::Timeout);
  const std::uint32_t begin = f.c.cwnd;
  f.run(Duration::ms(100));
  EXPECT_EQ(f.c.cubic.w_max, begin);
  EXPECT_EQ(f.c.cubic.k_ms, 0u);
}

TEST(Cubic, TimeWithoutUseDoesNotCount_RFC9438_4_2) {
  Flow f(100'000, Duration::ms(100));
  f.run(Duration::s(1));
  const std::uint32_t before = f.c.cwnd;
  f.run(Duration::s(20), false);
  EXPECT_EQ(f.c.cwnd, before);
  f.run(Duration::ms(100));
  EXPECT_LT(f.c.cwnd, before + 3 * kSmss);
  // Time in silence does not count either.
  f.now = f.now + Duration::s(20);
  f.run(Duration::ms(100));
  EXPECT_LT(f.c.cwnd, before + 6 * kSmss);
}

TEST(Cubic, UndoRestoresThePlateau_RFC9438_4_9) {
  Flow f(100'000, Duration::ms(100));
  f.run(Duration::s(3));
  const std::uint32_t cwnd = f.c.cwnd, ssthresh = f.c.ssthresh, w_max = f.c.cubic.w_max;
  f.cut(Cut::Loss);
  cc_undo(f.c);
  EXPECT_EQ(f.c.cwnd, cwnd);
  EXPECT_EQ(f.c.ssthresh, ssthresh);
  EXPECT_EQ(f.c.cubic.w_max, w_max);
  cc_undo(f.c);
  EXPECT_EQ(f.c.cwnd, cwnd) << "once for every cut";
}

}  // namespace
}  // namespace urnic::tcp
