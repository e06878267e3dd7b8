// The thread on the port polls for an arrival before it sleeps: how often it sleeps, and what ends
// its polling.
#include "device/seated.h"

namespace urnic::device {
namespace {

struct Lookouts : Seated {
  static constexpr unsigned kWaits = 2000;
  // The share of seated waits in which it slept although there was something. False: most waits
  // were not seated because the thread came back late, as on a busy machine.
  bool knows_share(double* share) {
    const std::uint64_t slept = driver->sleeps();
    const unsigned armed = seen.application_arms;
    for (unsigned i = 0; i < kWaits; ++i) driver->wait(ready.get(), Duration::s(10));
    const unsigned seated = seen.application_arms - armed;
    *share = static_cast<double>(driver->sleeps() - slept) / seated;
    return seated > kWaits / 2;
  }
};
struct LookingOut : Lookouts {
  LookingOut() { lookout = Duration::s(kNotWoken.count()); }
};

// Lookout.PollsOnceBeforeItSleeps proves it; this test shows that the driver uses it.
TEST_F(LookingOut, PollingComesBeforeSleep) {
  drive();
  // If other threads need the core, sleeping is right: then try again.
  double share = 1;
  EXPECT_TRUE(test::soon([&] { return knows_share(&share) && share < 0.25; },
                         std::chrono::milliseconds(20)))
      << share;
}

TEST_F(Lookouts, WithoutALookoutItSleepsAtOnce) {
  drive();
  double share = 0;
  ASSERT_TRUE(soon([&] { return knows_share(&share); }));
  EXPECT_GE(share, 0.75);
}

TEST_F(LookingOut, AnArrivalATimeOutADeadlineAndTheBellEndIt) {
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
}  // namespace urnic::device
