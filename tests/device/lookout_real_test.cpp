// Who sits on the port looks out for an arrival before it sleeps: how often it sleeps, and what
// ends its looking out.
#include "device/seated.h"

namespace urnic::engine {
namespace {

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
  LookingOut() { lookout = Duration::s(kNotWoken.count()); }
};

// proves: E-51
TEST_F(LookingOut, ComesBeforeSleep) {
  drive();
  // Where others need the core it is right to sleep, and the thread comes back late: once more.
  EXPECT_TRUE(soon([&] { return sleeps() < kWaits / 4; }));
}

TEST_F(Lookouts, WithoutOneItSleepsAtOnce) {
  drive();
  EXPECT_TRUE(soon([&] { return sleeps() >= kWaits / 4; })) << "each, but where it came back late";
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
  EXPECT_LT(Clock::now() - asked, kNotWoken / 2);
  EXPECT_TRUE(soon([&] { return hooks.events != 0; }));
  driver.reset();
}

}  // namespace
}  // namespace urnic::engine
