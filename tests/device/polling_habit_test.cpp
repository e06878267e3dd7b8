// Which applications count as polling all the time, in simulated time.
#include "device/polling_habit.h"

#include <gtest/gtest.h>

namespace urnic::device {
namespace {

struct PollingHabitTest : testing::Test {
  // Polls for `length`, once in `every`; each poll takes `working` (0: it found nothing).
  void poll(Duration length, Duration every, Duration working = Duration()) {
    for (const Instant end = now + length; now < end;) {
      habit.begin(now);
      if (working != Duration()) habit.end(now + working);
      now = now + std::max(every, working);
    }
  }
  PollingHabit habit;
  Instant now = Instant::from_ns(1'000'000'000);
};

TEST_F(PollingHabitTest, PollingBackToBackCountsAfterAWindow) {
  poll(Duration::us(900), Duration::ns(200));
  EXPECT_FALSE(habit.steady());
  poll(Duration::us(300), Duration::ns(200));
  EXPECT_TRUE(habit.steady());
}

TEST_F(PollingHabitTest, WorkInsideAPollIsPolling) {
  poll(Duration::ms(5), Duration::us(45), Duration::us(30));
  EXPECT_TRUE(habit.steady());
}

// Ping-pong over memory does this: a poll or two for the own completion, then none for a while.
TEST_F(PollingHabitTest, DoingOtherWorkMostOfTheTimeIsNotPolling) {
  for (int i = 0; i < 1000; ++i) {
    poll(Duration::us(2), Duration::us(1));
    now = now + Duration::us(12);
    ASSERT_FALSE(habit.steady());
  }
}

TEST_F(PollingHabitTest, AShortPauseEndsItUnlessTheLastOneWasLongAgo) {
  poll(Duration::ms(3), Duration::ns(200));
  for (int i = 0; i < 3; ++i) {
    now = now + RarePause::kShort - Duration::us(1);
    habit.begin(now);
    EXPECT_TRUE(habit.steady());
    poll(RarePause::kActive + Duration::us(1), Duration::ns(200));
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(habit.steady());
    now = now + PollingHabit::kPause + Duration::us(1);
    habit.begin(now);
  }
  EXPECT_FALSE(habit.steady());
}

TEST_F(PollingHabitTest, ALongPauseEndsIt) {
  poll(Duration::ms(3), Duration::ns(200));
  now = now + RarePause::kShort + Duration::us(1);
  habit.begin(now);
  EXPECT_FALSE(habit.steady());
}

TEST_F(PollingHabitTest, TheHabitEndsWithinAWindowOfMostlyOtherWork) {
  poll(Duration::ms(3), Duration::ns(200));
  ASSERT_TRUE(habit.steady());
  poll(PollingHabit::kWindow * 2, Duration::us(20));
  EXPECT_FALSE(habit.steady());
}

TEST_F(PollingHabitTest, TheTimeOfAPostDoesNotCount) {
  for (int i = 0; i < 100; ++i) {
    poll(Duration::us(40), Duration::ns(200));
    habit.post(now);
    now = now + Duration::us(18);
  }
  EXPECT_TRUE(habit.steady());
  // Posts alone do not make a habit either.
  habit.forget();
  for (int i = 0; i < 1000; ++i) {
    habit.post(now);
    now = now + Duration::us(10);
  }
  EXPECT_FALSE(habit.steady());
}

// The core was yielded for want of room, and other threads used it for long.
TEST_F(PollingHabitTest, YieldingIsPolling) {
  poll(Duration::ms(3), Duration::ns(200));
  for (int i = 0; i < 10; ++i) {
    habit.begin(now);
    habit.yield();
    now = now + Duration::ms(3);
    EXPECT_TRUE(habit.steady());
  }
}

TEST_F(PollingHabitTest, AnnouncingASleepEndsTheHabit) {
  poll(Duration::ms(3), Duration::ns(200));
  ASSERT_TRUE(habit.steady());
  habit.forget();
  EXPECT_FALSE(habit.steady());
  poll(Duration::us(500), Duration::ns(200));
  EXPECT_FALSE(habit.steady());
}

}  // namespace
}  // namespace urnic::device
