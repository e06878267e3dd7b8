#include "base/token_bucket.h"

#include <gtest/gtest.h>

namespace urnic {
namespace {

TEST(TokenBucket, AllowsABurstThenTheRate) {
  TokenBucket b(10, 3);
  const Instant t0 = Instant::from_ns(0) + Duration::s(5);
  EXPECT_TRUE(b.take(t0));
  EXPECT_TRUE(b.take(t0));
  EXPECT_TRUE(b.take(t0));
  EXPECT_FALSE(b.take(t0));
  EXPECT_FALSE(b.take(t0 + Duration::ms(99)));
  EXPECT_TRUE(b.take(t0 + Duration::ms(100)));
  EXPECT_FALSE(b.take(t0 + Duration::ms(101)));
  // A long idle time fills it up, but not beyond its size.
  int taken = 0;
  while (b.take(t0 + Duration::s(100))) ++taken;
  EXPECT_EQ(taken, 3);
}

TEST(TokenBucket, LongRunRateIsExact) {
  TokenBucket b(1000, 50);
  int taken = 0;
  for (int us = 0; us < 1000000; us += 100) {
    taken += b.take(Instant::from_ns(0) + Duration::us(us));
  }
  EXPECT_NEAR(taken, 1050, 1);
}

TEST(TokenBucket, HasDoesNotTakeAToken) {
  TokenBucket b(10, 1);
  const Instant t0 = Instant::from_ns(0) + Duration::s(5);
  EXPECT_TRUE(b.has(t0));
  EXPECT_TRUE(b.has(t0));
  EXPECT_TRUE(b.take(t0));
  EXPECT_FALSE(b.has(t0 + Duration::ms(99)));
  EXPECT_TRUE(b.has(t0 + Duration::ms(100)));
}

}  // namespace
}  // namespace urnic
