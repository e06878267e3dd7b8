// Who sits on the port looks out for an arrival before it sleeps, where that is promising.
#include "device/lookout.h"

#include "device/seated.h"

namespace urnic::engine {
namespace {

Instant at(std::int64_t us) {
  return Instant() + Duration::us(us);
}

// proves: E-51
TEST(Lookout, WaitsThatWereBriefAreLookedOutIn) {
  Lookout l(Duration::us(50));
  EXPECT_EQ(l.begin(at(1)), Duration::us(50)) << "the first may be";
  l.ended(Duration::us(100));
  EXPECT_EQ(l.begin(at(200)), Duration()) << "it will take as long again";
  l.ended(Duration::us(99));
  EXPECT_EQ(l.begin(at(300)), Duration::us(50));
  EXPECT_EQ(Lookout(Duration()).begin(at(1)), Duration());
}

// proves: E-51
TEST(Lookout, WhereOthersNeedTheCoreNobodyLooksOutForAWhile) {
  Lookout l(Duration::us(50));
  EXPECT_TRUE(l.goes_on(at(1000), at(1000) + Lookout::kPutAside - Duration::ns(1)));
  EXPECT_EQ(l.begin(at(1100)), Duration::us(50));
  const Instant now = at(1000) + Lookout::kPutAside;
  EXPECT_FALSE(l.goes_on(at(1000), now));
  EXPECT_EQ(l.begin(now), Duration());
  l.ended(Duration::us(1));
  EXPECT_EQ(l.begin(now + Lookout::kRest - Duration::ns(1)), Duration());
  EXPECT_EQ(l.begin(now + Lookout::kRest), Duration::us(50));
}

struct Lookouts : Seated {
  static constexpr std::uint64_t kWaits = 2000;
  // Sleeps in so many waits for what is there; those of our thread besides, and none where it came
  // back late and was not given the seat.
  std::uint64_t sleeps() {
    const std::uint64_t before = driver->sleeps();
    for (std::uint64_t i = 0; i < kWaits; ++i) driver->wait(ready.get(), Duration::s(10));
    return driver->sleeps() - before;
  }
};
struct LookingOut : Lookouts {
  LookingOut() { lookout = Duration::s(10); }
};

// proves: E-51
TEST_F(LookingOut, ComesBeforeSleep) {
  drive();
  EXPECT_LT(sleeps(), kWaits / 4);
}

TEST_F(Lookouts, WithoutOneItSleepsAtOnce) {
  drive();
  EXPECT_GE(sleeps(), kWaits / 4);
}

TEST_F(LookingOut, WhatArrivesTimeADeadlineAndTheBellEndIt) {
  drive();
  expect_served_by_itself();
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(driver->wait(quiet.get(), Duration::ms(3)));
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(20));
  Clock::time_point asked;
  ASSERT_TRUE(wait_seated([&] {
    asked = Clock::now();
    EXPECT_TRUE(only_a_deadline());
  }));
  EXPECT_LT(Clock::now() - asked, std::chrono::seconds(5)) << "it would for 10 s";
  EXPECT_TRUE(soon([&] { return hooks.events != 0; }));
  driver.reset();
}

}  // namespace
}  // namespace urnic::engine
