#include "tcp/challenge.h"

#include <gtest/gtest.h>

#include <set>

namespace urnic::tcp {
namespace {

const Instant kStart = Instant::from_ns(1'000'000'000);

// Returns how many of 100 are allowed at `t`.
int allowed(ChallengeLimiter& c, std::uint32_t most, std::uint64_t key, Instant t) {
  int n = 0;
  for (int i = 0; i < 100; ++i) n += c.allow(most, key, t + Duration::us(i)) ? 1 : 0;
  return n;
}

TEST(ChallengeLimiter, WithoutAKeyTenPerFiveSeconds_RFC5961_7) {
  ChallengeLimiter c;
  EXPECT_EQ(allowed(c, 10, 0, kStart), 10);
  EXPECT_EQ(allowed(c, 10, 0, kStart + Duration::ms(4999)), 0);
  EXPECT_EQ(allowed(c, 10, 0, kStart + Duration::s(5)), 10);
}

TEST(ChallengeLimiter, TheLimitIsConfigurable) {
  ChallengeLimiter one, none;
  EXPECT_EQ(allowed(one, 1, 0, kStart), 1);
  EXPECT_EQ(allowed(none, 0, 0, kStart), 0);
  EXPECT_EQ(allowed(none, 0, 7, kStart), 0);
}

// proves: E-46
TEST(ChallengeLimiter, AShareThatOnlyTheKeyDeterminesIsLeftOut) {
  std::set<int> seen;
  bool differ = false;
  ChallengeLimiter a, b;
  for (int w = 0; w < 64; ++w) {
    const Instant t = kStart + Duration::s(10 * w);
    const int x = allowed(a, 10, 0x1234567, t), y = allowed(b, 10, 0x7654321, t);
    EXPECT_GE(x, 5);
    EXPECT_LE(x, 10);
    seen.insert(x);
    differ |= x != y;
  }
  EXPECT_EQ(seen.size(), 6u) << "every number from half to all";
  EXPECT_TRUE(differ) << "two connections in step would tell of each other";
}

}  // namespace
}  // namespace urnic::tcp
