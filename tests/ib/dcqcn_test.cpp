// DCQCN's reaction point as a window (S-10).
#include "ib/dcqcn.h"

#include <gtest/gtest.h>

namespace urnic::ib {
namespace {

class Dcqcn : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kMost = 256;

  void pass(Duration d) {
    now = now + d;
    w.advance(now);
  }

  DcqcnWindow w{kMost};
  Instant now = Instant::from_ns(1'000'000);
};

// proves: S-10
TEST_F(Dcqcn, TheWindowBeginsOpenAndTheFirstCnpHalvesIt) {
  EXPECT_EQ(w.packets(), kMost);
  EXPECT_TRUE(w.cut(now));
  EXPECT_EQ(w.packets(), kMost / 2);
}

// proves: S-10
TEST_F(Dcqcn, AlphaFallsWithoutCnpsSoThatTheNextCutIsSmaller) {
  w.cut(now);
  const std::uint32_t before = w.alpha();
  pass(Duration::ms(20));
  EXPECT_LT(w.alpha(), before / 3);
  EXPECT_EQ(w.packets(), kMost);
  w.cut(now);
  EXPECT_GT(w.packets(), kMost * 3 / 4);
}

// proves: S-10
TEST_F(Dcqcn, TheRateRecoversHalfWayEachPeriodAtFirst) {
  w.cut(now);
  pass(DcqcnWindow::kPeriod);
  EXPECT_EQ(w.packets(), 192u);
  pass(DcqcnWindow::kPeriod);
  EXPECT_EQ(w.packets(), 224u);
  pass(Duration::ms(5));
  EXPECT_EQ(w.packets(), kMost);
}

// proves: S-10
TEST_F(Dcqcn, AfterManyCnpsTheRateRecoversByAdditions) {
  for (int i = 0; i < 20; ++i) {
    now = now + Duration::us(50);
    w.cut(now);
  }
  EXPECT_EQ(w.packets(), DcqcnWindow::kFloor);
  pass(DcqcnWindow::kPeriod * 5);
  EXPECT_LE(w.packets(), 5u);
  pass(DcqcnWindow::kPeriod * 20);
  EXPECT_GE(w.packets(), 12u);
  EXPECT_LE(w.packets(), 40u);
}

// proves: S-10
TEST_F(Dcqcn, PacketsSentAlsoMakeTheRateRecover) {
  DcqcnWindow idle{kMost};
  for (DcqcnWindow* one : {&w, &idle}) {
    for (int i = 0; i < 20; ++i) one->cut(now + Duration::us(50) * i);
  }
  now = now + Duration::ms(1);
  for (int i = 0; i < 100'000; ++i) w.sent();
  w.advance(now);
  idle.advance(now);
  EXPECT_GT(w.packets(), idle.packets());
}

// proves: S-10
TEST_F(Dcqcn, OnlyOneCnpPer50usIsActedUpon) {
  EXPECT_TRUE(w.cut(now));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(w.cut(now + Duration::ns(49'999)));
  EXPECT_EQ(w.packets(), kMost / 2);
  for (int i = 1; i < 1000; ++i) w.cut(now + Duration::us(50) * i);
  EXPECT_EQ(w.packets(), DcqcnWindow::kFloor);
}

// proves: S-10
TEST_F(Dcqcn, ATimeoutReducesTheRateToTheFloor) {
  w.time_out(now);
  EXPECT_EQ(w.packets(), DcqcnWindow::kFloor);
  w.time_out(now);
  EXPECT_EQ(w.packets(), DcqcnWindow::kFloor);
}

TEST_F(Dcqcn, TheRateCatchesUpAtOnceAfterALongSilence) {
  w.cut(now);
  pass(Duration::s(3600));
  EXPECT_EQ(w.packets(), kMost);
  EXPECT_TRUE(w.cut(now));
  EXPECT_GE(w.packets(), kMost - 1);
}

}  // namespace
}  // namespace urnic::ib
