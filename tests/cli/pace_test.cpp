#include "cli/pace.h"

#include <gtest/gtest.h>

namespace urnic::cli {
namespace {

TEST(Pace, NeverFasterThanItsRateOverASecond) {
  Pace pace(1'000'000);
  double now = 100;
  std::uint64_t sent = 0;
  for (; now < 110; now += 0.001) {
    while (pace.may(now)) {
      pace.spend(4096, now);
      sent += 4096;
    }
  }
  EXPECT_LE(sent, 10'100'000u);
  EXPECT_GE(sent, 9'900'000u);
}

TEST(Pace, ALoopThatSleepsBrieflyKeepsTheRate) {
  Pace pace(1'000'000);
  std::uint64_t sent = 0;
  for (double now = 100; now < 110; now += 0.04) {
    while (pace.may(now)) {
      pace.spend(4096, now);
      sent += 4096;
    }
  }
  EXPECT_GE(sent, 9'900'000u);
}

TEST(Pace, LongUnusedTimeIsNotMadeUpFor) {
  Pace pace(1'000'000);
  pace.spend(1000, 100);
  std::uint64_t sent = 0;
  while (pace.may(200)) {
    pace.spend(1000, 200);
    sent += 1000;
  }
  EXPECT_LE(sent, 52'000u);
  EXPECT_GT(pace.wait(200), 0);
}

TEST(Pace, WithoutARateNothingWaits) {
  Pace pace;
  pace.spend(UINT64_MAX, 1);
  EXPECT_TRUE(pace.may(1));
  EXPECT_EQ(pace.wait(1), 0);
  EXPECT_FALSE(pace.limits());
}

}  // namespace
}  // namespace urnic::cli
