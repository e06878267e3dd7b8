#include "tcp/challenge.h"

#include <gtest/gtest.h>

namespace urnic::tcp {
namespace {

TEST(ChallengeLimiter, TenPerFiveSeconds_RFC5961_7) {
  ChallengeLimiter c;
  Instant t = Instant::from_ns(0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(c.allow(t + Duration::ms(i)));
  EXPECT_FALSE(c.allow(t + Duration::ms(100)));
  EXPECT_FALSE(c.allow(t + Duration::ms(4999)));
  EXPECT_TRUE(c.allow(t + Duration::s(5)));
}

TEST(ChallengeLimiter, LimitOfChoice) {
  ChallengeLimiter c(1, Duration::s(1));
  EXPECT_TRUE(c.allow(Instant::from_ns(0)));
  EXPECT_FALSE(c.allow(Instant::from_ns(1)));
  ChallengeLimiter none(0);
  EXPECT_FALSE(none.allow(Instant::from_ns(0)));
}

}  // namespace
}  // namespace urnic::tcp
