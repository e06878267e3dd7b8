#include "tcp/rtt.h"

#include <gtest/gtest.h>

namespace urnic::tcp {
namespace {

Config config() {
  Config c;
  c.rto_initial = Duration::s(1);
  c.rto_min = Duration::ms(200);
  c.rto_max = Duration::s(60);
  return c;
}

TEST(Rtt, FirstAndLaterSamples_RFC6298_2) {
  Rtt r;
  rtt_open(r, config());
  EXPECT_EQ(r.rto, Duration::s(1));
  rtt_sample(r, config(), Duration::ms(400));
  EXPECT_EQ(r.srtt, Duration::ms(400));
  EXPECT_EQ(r.rttvar, Duration::ms(200));
  EXPECT_EQ(r.rto, Duration::ms(1200));
  rtt_sample(r, config(), Duration::ms(800));
  EXPECT_EQ(r.rttvar, Duration::ms(250));  // 3/4 * 200 + 1/4 * |400 - 800|
  EXPECT_EQ(r.srtt, Duration::ms(450));    // 7/8 * 400 + 1/8 * 800
  EXPECT_EQ(r.rto, Duration::ms(1450));
}

TEST(Rtt, BoundsOfTheTimeout) {
  Rtt r;
  rtt_open(r, config());
  rtt_sample(r, config(), Duration::us(50));
  EXPECT_EQ(r.rto, Duration::ms(200));
  for (int i = 0; i < 9; ++i) rtt_back_off(r, config());
  rtt_sample(r, config(), Duration::s(100));
  EXPECT_EQ(r.rto, Duration::s(60));
}

// The machine slept between a segment and its ACK. The timer has not expired, since nothing ran it.
TEST(Rtt, ASleepIsNotARoundTrip) {
  Rtt r;
  rtt_open(r, config());
  rtt_sample(r, config(), Duration::ms(100));
  EXPECT_EQ(r.rto, Duration::ms(300));
  rtt_sample(r, config(), Duration::s(3600));
  EXPECT_EQ(r.srtt, Duration::ms(100));
  EXPECT_EQ(r.rto, Duration::ms(300));
  rtt_sample(r, config(), Duration::ms(900));  // a path that has become longer is not a sleep
  EXPECT_EQ(r.srtt, Duration::ms(200));
  Rtt first;
  rtt_open(first, config());
  rtt_sample(first, config(), Duration::s(3600));
  EXPECT_FALSE(first.measured);
}

// The timer expires late and once, before the waiting ACK is read.
TEST(Rtt, ASleepThatEndsWithTheTimerIsNotARoundTrip) {
  Rtt r;
  rtt_open(r, config());
  rtt_sample(r, config(), Duration::ms(400));
  EXPECT_EQ(r.rto, Duration::ms(1200));
  rtt_back_off(r, config());
  rtt_sample(r, config(), Duration::s(3600));
  EXPECT_EQ(r.srtt, Duration::ms(400));
  EXPECT_EQ(r.backoff, 1);
  // A path that has become much longer is recognized by a sample across expirations: at 1.2, 3.6
  // and 8.4 s, and not yet at 18 s.
  rtt_back_off(r, config());
  rtt_back_off(r, config());
  rtt_sample(r, config(), Duration::s(17));
  EXPECT_GT(r.srtt, Duration::s(2));
  EXPECT_EQ(r.backoff, 0);
}

TEST(Rtt, TheClockGranularityIsTheLeastMargin_RFC6298_2_3) {
  Config c = config();
  c.rto_min = Duration::us(1);
  Rtt r;
  rtt_open(r, c);
  for (int i = 0; i < 200; ++i) rtt_sample(r, c, Duration::ms(10));
  EXPECT_LT(r.rttvar, Duration::us(1));
  EXPECT_EQ(r.rto - r.srtt, Duration::ms(1));
}

TEST(Rtt, BackOffDoublesUntilASampleComes_RFC6298_5) {
  Rtt r;
  rtt_open(r, config());
  rtt_sample(r, config(), Duration::ms(100));
  EXPECT_EQ(r.rto, Duration::ms(300));
  for (int i = 0; i < 3; ++i) rtt_back_off(r, config());
  EXPECT_EQ(r.rto, Duration::ms(2400));
  EXPECT_EQ(r.backoff, 3);
  for (int i = 0; i < 300; ++i) rtt_back_off(r, config());
  EXPECT_EQ(r.rto, Duration::s(60));
  EXPECT_EQ(r.backoff, 255);
  rtt_sample(r, config(), Duration::ms(100));
  EXPECT_EQ(r.rto, Duration::ms(250));
  EXPECT_EQ(r.backoff, 0);
}

TEST(Rtt, AfterALostSynThreeSeconds_RFC6298_5_7) {
  Rtt r;
  rtt_open(r, config());
  rtt_back_off(r, config());
  rtt_after_syn_loss(r, config());
  EXPECT_EQ(r.rto, Duration::s(3));
  rtt_sample(r, config(), Duration::ms(100));
  rtt_after_syn_loss(r, config());
  EXPECT_EQ(r.rto, Duration::ms(300)) << "a sample says more";
}

TEST(Rtt, NegativeSamplesAreIgnored) {
  Rtt r;
  rtt_open(r, config());
  rtt_sample(r, config(), Duration::ms(-5));
  EXPECT_FALSE(r.measured);
}

}  // namespace
}  // namespace urnic::tcp
