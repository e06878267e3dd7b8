// The window, by round trips and signals of the network (S-10), without a queue pair.
#include "ib/window.h"

#include <gtest/gtest.h>

namespace urnic::ib {
namespace {

class Window : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kMost = 256;

  // A round with that round trip time, in which the window held packets back.
  bool round(Duration trip, bool limited = true) {
    AimdWindow::Round r;
    r.trip = trip;
    r.settled = r.quiet = true;
    r.limited = limited;
    now = now + Duration::ms(1);
    return w.round(r, now);
  }
  // Opens the window completely.
  void open() {
    for (int i = 0; i < 10; ++i) round(kTrip);
    ASSERT_EQ(w.packets(), kMost);
  }
  static constexpr Duration kTrip = Duration::us(50);

  AimdWindow w{kMost};
  Instant now = Instant::from_ns(1'000'000);
};

// proves: S-10
TEST_F(Window, DoublesEachRoundAtFirst) {
  EXPECT_EQ(w.packets(), AimdWindow::kFirst);
  for (std::uint32_t n = AimdWindow::kFirst * 2; n <= kMost; n *= 2) {
    round(kTrip);
    EXPECT_EQ(w.packets(), n);
  }
  round(kTrip);
  EXPECT_EQ(w.packets(), kMost);
}

TEST_F(Window, IsNeverLargerThanTheConfiguredWindow) {
  for (const std::uint32_t most : {1u, 2u, 5u, 65536u}) {
    AimdWindow small(most);
    EXPECT_LE(small.packets(), most);
    small.time_out();
    EXPECT_EQ(small.packets(), std::min(most, AimdWindow::kFloor));
  }
}

// proves: S-10
TEST_F(Window, GrowsOnlyIfItHeldPacketsBack) {
  for (int i = 0; i < 20; ++i) round(kTrip, false);
  EXPECT_EQ(w.packets(), AimdWindow::kFirst);
}

// proves: S-10
TEST_F(Window, ACnpHalvesItAndNeverBelowTheFloor) {
  open();
  EXPECT_TRUE(w.notified());
  EXPECT_EQ(w.packets(), kMost / 2);
  for (int i = 0; i < 100; ++i) w.notified();
  EXPECT_EQ(w.packets(), AimdWindow::kFloor);
}

// proves: S-10
TEST_F(Window, ManyLossesReduceItByThreeTenths) {
  open();
  w.cut();
  EXPECT_NEAR(w.packets(), kMost * 7 / 10, 1);
}

// proves: S-10
TEST_F(Window, ATimeoutReducesItToTheFloorAndItRecoversFast) {
  open();
  w.time_out();
  EXPECT_EQ(w.packets(), AimdWindow::kFloor);
  int rounds = 0;
  for (; w.packets() < kMost / 2 && rounds < 100; ++rounds) round(kTrip);
  EXPECT_EQ(rounds, 6);  // 2, 4, .. 128
}

// proves: S-10
TEST_F(Window, ALongerRoundTripReducesIt) {
  open();
  EXPECT_FALSE(round(kTrip + Duration::us(100)));
  EXPECT_TRUE(round(kTrip + Duration::us(150)));
  EXPECT_NEAR(w.packets(), kMost * 7 / 10, 1);
}

// proves: S-10
TEST_F(Window, OnALongPathTheTargetIsTwoRoundTrips) {
  for (int i = 0; i < 10; ++i) round(Duration::ms(1));
  EXPECT_EQ(w.target(), Duration::ms(2));
  EXPECT_FALSE(round(Duration::us(2900)));
  EXPECT_TRUE(round(Duration::us(3100)));
}

// proves: S-10
TEST_F(Window, ACutWithoutEffectRaisesTheTarget) {
  open();
  const Duration queue = Duration::ms(2);
  ASSERT_EQ(w.target(), AimdWindow::kLeastTarget);
  int cuts = 0;
  for (int i = 0; i < 20; ++i) cuts += round(kTrip + queue) ? 1 : 0;
  EXPECT_GT(w.target(), queue);
  EXPECT_LE(cuts, 6);
  EXPECT_GT(w.packets(), kMost / 10) << "others fill the queue, and get all of it";
}

// proves: S-10
TEST_F(Window, ACutThatHelpedLowersTheTargetAgain) {
  open();
  for (int i = 0; i < 20; ++i) round(kTrip + Duration::ms(2));
  const Duration lifted = w.target();
  for (int i = 0; i < 100; ++i) {
    round(kTrip + lifted + Duration::us(10));
    round(kTrip);
  }
  EXPECT_EQ(w.target(), AimdWindow::kLeastTarget);
}

// proves: S-10
TEST_F(Window, WithARaisedTargetMarksOfALongQueueAreIgnored) {
  open();
  for (int i = 0; i < 20; ++i) round(kTrip + Duration::ms(2));
  const std::uint32_t before = w.packets();
  EXPECT_FALSE(w.notified());
  EXPECT_EQ(w.packets(), before);
  round(kTrip);  // it is short again
  EXPECT_TRUE(w.notified());
}

// proves: S-10
TEST_F(Window, LossesWithALongQueueLowerTheTarget) {
  open();
  round(kTrip + Duration::us(80));
  w.note_loss();
  EXPECT_EQ(w.target(), Duration::us(60));
  EXPECT_TRUE(round(kTrip + Duration::us(70)));
  // Without a queue, a loss does not show the queue's limit.
  AimdWindow idle(kMost);
  AimdWindow::Round r;
  r.trip = kTrip;
  r.settled = r.quiet = true;
  idle.round(r, now);
  idle.note_loss();
  EXPECT_EQ(idle.target(), AimdWindow::kLeastTarget);
}

TEST_F(Window, TheShortestRoundTripExpires) {
  open();
  EXPECT_EQ(w.base(), kTrip);
  for (int i = 0; i < 21'000; ++i) round(Duration::us(90));
  EXPECT_EQ(w.base(), Duration::us(90)) << "the way has become longer";
}

}  // namespace
}  // namespace urnic::ib
