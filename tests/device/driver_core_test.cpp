// How an application whose polls find nothing shares its core (poll_wait.h).
#include <chrono>
#include <thread>

#include "device/crowded_core.h"
#include "device/observed_driver.h"

namespace urnic::device {
namespace {

using Steady = std::chrono::steady_clock;
const Duration kLong = Duration::s(8);
constexpr std::chrono::seconds kSooner(4);

struct CrowdedDriver : ObservedDriver {
  void SetUp() override {
    if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  }
  template <class F>
  bool polls_until(F&& f) {
    for (const auto end = Steady::now() + test::kSoon; Steady::now() < end;) {
      for (int i = 0; i < 20; ++i) driver->app_poll();
      if (f()) return true;
    }
    return false;
  }
};

// proves: E-51
TEST_F(CrowdedDriver, PollsWithoutResultSleepOnAContendedCore) {
  doze = Duration::us(200);
  drive();
  ASSERT_TRUE(poll_until_watched());
  const CrowdedCore core;
  const unsigned before = seen.application_arms;
  const unsigned disarmed = seen.application_disarms;
  EXPECT_TRUE(polls_until([&] { return seen.application_arms - before >= 20; }));
  EXPECT_GE(seen.application_disarms - disarmed, seen.application_arms - before) << "behind each";
}

TEST_F(CrowdedDriver, PollsDoNotSleepIfDozeIsZero) {
  drive();
  ASSERT_TRUE(poll_until_watched());
  const CrowdedCore core;
  // no frame arrives, which would also be followed by an arm
  const unsigned before = seen.application_arms;
  EXPECT_TRUE(polls_until([&] { return core.computed() >= 100'000'000; }));
  EXPECT_EQ(seen.application_arms, before);
}

// A poll that may sleep for long is woken by an arrival, and returns it.
// proves: E-51
TEST_F(CrowdedDriver, AnArrivalWakesASleepingPoll) {
  doze = kLong;
  drive();
  ASSERT_TRUE(poll_until_watched());
  const CrowdedCore core;
  const unsigned before = seen.application_arms;
  Steady::time_point sent;
  std::thread sender([&] {
    EXPECT_TRUE(soon([&] { return seen.armed && seen.application_arms != before; }));
    sent = Steady::now();
    arrive();
  });
  EXPECT_TRUE(polls_until([this] { return seen.frames != 0; }));
  sender.join();
  EXPECT_LT(Steady::now() - sent, kSooner);
}

// A deadline wakes it as well. Only rounds in which a poll slept count: on a busy machine it may
// have a core for itself, or the driver's thread handles the deadline and the poll is not woken.
// proves: E-51, if undisturbed
TEST_F(CrowdedDriver, ASleepingPollWakesAtTheNextDeadline) {
  doze = kLong;
  unsigned sooner = 0, later = 0;
  for (int round = 0; round < 8 && sooner == 0 && later < 2; ++round) {
    driver.reset();
    drive();
    ASSERT_TRUE(poll_until_watched());
    const CrowdedCore core;
    const unsigned events = hooks.events, sleeps = seen.application_arms;
    ASSERT_TRUE(only_a_deadline());
    const auto begun = Steady::now();
    ASSERT_TRUE(polls_until([&] { return hooks.events != events; }));
    if (seen.application_arms == sleeps) continue;
    ++(Steady::now() - begun < kSooner ? sooner : later);
  }
  if (sooner + later == 0) GTEST_SKIP() << "no poll slept";
  EXPECT_EQ(sooner, 1u) << later << " later";
}

}  // namespace
}  // namespace urnic::device
