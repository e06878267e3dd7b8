#include "ib/timers.h"

#include <gtest/gtest.h>

namespace urnic::ib {
namespace {

constexpr Instant kStart = Instant::from_ns(5'000'000);

// proves: IB-70
TEST(AckTimer, CodesArePowersOfTwoOf4096ns) {
  EXPECT_EQ(ack_timeout(1), Duration::ns(8192));
  EXPECT_EQ(ack_timeout(8), Duration::ns(1'048'576));
  EXPECT_EQ(ack_timeout(14), Duration::ns(67'108'864));
  EXPECT_EQ(ack_timeout(19), Duration::ns(2'147'483'648));
  EXPECT_EQ(ack_timeout(31), Duration::ns(8'796'093'022'208));
}

// proves: IB-70
TEST(AckTimer, ExpiresBetweenOnceAndFourTimesItsTime) {
  for (const std::uint8_t code : {1, 5, 10, 14, 19, 31}) {
    TransportTimer t(code, Duration::zero());
    t.start(kStart);
    EXPECT_FALSE(t.expired(kStart + ack_timeout(code) - Duration::ns(1))) << int{code};
    EXPECT_TRUE(t.expired(kStart + ack_timeout(code) * 4)) << int{code};
    EXPECT_LE(t.due(), kStart + ack_timeout(code) * 4) << int{code};
  }
}

// proves: IB-70
TEST(AckTimer, CodeZeroIsNoTimer) {
  TransportTimer t(0, Duration::ms(1));
  t.start(kStart);
  EXPECT_FALSE(t.running());
  t.restart(kStart);
  EXPECT_FALSE(t.running());
  EXPECT_FALSE(t.expired(kStart + Duration::s(100'000)));
}

TEST(AckTimer, IsNotShorterThanTheResolutionOfItsOwner) {
  TransportTimer t(1, Duration::us(100));
  t.start(kStart);
  EXPECT_EQ(t.due(), kStart + Duration::us(100));
}

TEST(AckTimer, StartLeavesARunningOneAndRestartDoesNot) {
  TransportTimer t(10, Duration::zero());
  t.start(kStart);
  t.start(kStart + Duration::ms(1));
  EXPECT_EQ(t.due(), kStart + ack_timeout(10));
  t.restart(kStart + Duration::ms(1));
  EXPECT_EQ(t.due(), kStart + Duration::ms(1) + ack_timeout(10));
  t.stop();
  EXPECT_FALSE(t.running());
}

// proves: IB-56
TEST(RnrWait, EachOf32CodesHasItsTime) {
  // In microseconds, as in the specification.
  constexpr std::int64_t kUs[32] = {
      655'360, 10,     20,     30,     40,     60,      80,      120,     160,     240,    320,
      480,     640,    960,    1280,   1920,   2560,    3840,    5120,    7680,    10'240, 15'360,
      20'480,  30'720, 40'960, 61'440, 81'920, 122'880, 163'840, 245'760, 327'680, 491'520};
  for (std::uint8_t code = 0; code < 32; ++code) {
    EXPECT_EQ(rnr_wait(code), Duration::us(kUs[code])) << int{code};
  }
}

// proves: IB-74
TEST(RetryCounters, SevenRetriesAreSeven) {
  RetryCounters c(7, 0);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(c.take_retry()) << i;
  EXPECT_FALSE(c.take_retry());
  c.reload();
  EXPECT_TRUE(c.take_retry());
}

// proves: IB-73
TEST(RetryCounters, SevenRnrRetriesAreUnlimited) {
  RetryCounters c(0, 7);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(c.take_rnr_retry());
  for (std::uint8_t n = 0; n < 7; ++n) {
    RetryCounters few(0, n);
    for (int i = 0; i < n; ++i) EXPECT_TRUE(few.take_rnr_retry()) << int{n};
    EXPECT_FALSE(few.take_rnr_retry()) << int{n};
  }
}

}  // namespace
}  // namespace urnic::ib
