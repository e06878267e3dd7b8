// Which applications count as posting without a pause, in simulated time.
#include "device/posting_habit.h"

#include <gtest/gtest.h>

namespace urnic::device {
namespace {

struct PostingHabitTest : testing::Test {
  void post(Duration length, Duration every) {
    for (const Instant end = now + length; now < end; now = now + every) habit.post(now);
  }
  PostingHabit habit;
  Instant now = Instant::from_ns(1'000'000'000);
};

TEST_F(PostingHabitTest, PostingWithoutAPauseCountsAfterAWindow) {
  post(Duration::us(900), Duration::ns(500));
  EXPECT_FALSE(habit.streams());
  post(Duration::us(300), Duration::ns(500));
  EXPECT_TRUE(habit.streams());
}

TEST_F(PostingHabitTest, PostingNowAndThenDoesNotCount) {
  post(Duration::ms(20), Duration::us(40));
  EXPECT_FALSE(habit.streams());
}

TEST_F(PostingHabitTest, PostsThatEachFollowAnArrivalDoNotCount) {
  for (int i = 0; i < 1000; ++i, now = now + Duration::us(10)) {
    if (i % 8 != 0) habit.served();
    habit.post(now);
    ASSERT_FALSE(habit.streams()) << i;
  }
  for (int i = 0; i < 500; ++i, now = now + Duration::us(10)) {
    if (i % 2 != 0) habit.served();  // ACKs of a stream
    habit.post(now);
  }
  EXPECT_TRUE(habit.streams());
}

TEST_F(PostingHabitTest, ArrivalsBeforeTheFirstPostDoNotMatter) {
  for (int i = 0; i < 100'000; ++i) habit.served();
  post(Duration::us(1200), Duration::us(1));
  EXPECT_TRUE(habit.streams());
}

TEST_F(PostingHabitTest, PostingInBurstsWithPausesDoesNotCount) {
  for (int i = 0; i < 10; ++i) {
    post(Duration::us(900), Duration::us(1));
    now = now + PostingHabit::kPause + Duration::us(1);
    ASSERT_FALSE(habit.streams());
  }
}

TEST_F(PostingHabitTest, AShortPauseEndsItUnlessTheLastOneWasLongAgo) {
  post(Duration::ms(3), Duration::us(1));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(habit.streams());
    now = now + PostingHabit::kPause + Duration::us(1);
    habit.post(now);
  }
  EXPECT_FALSE(habit.streams());
}

TEST_F(PostingHabitTest, APauseIsDetectedWithoutAPost) {
  post(Duration::ms(3), Duration::us(1));
  habit.look(now + PostingHabit::kPause - Duration::us(2));
  EXPECT_TRUE(habit.streams());
  habit.look(now + PostingHabit::kPause + Duration::us(1));
  EXPECT_FALSE(habit.streams());
}

TEST_F(PostingHabitTest, TheHabitEndsWithinTwoWindowsOfRarePosts) {
  post(Duration::ms(3), Duration::us(1));
  ASSERT_TRUE(habit.streams());
  post(Duration::ms(4), Duration::us(45));
  EXPECT_FALSE(habit.streams());
}

TEST_F(PostingHabitTest, AnnouncingASleepEndsThePostingHabit) {
  post(Duration::ms(3), Duration::us(1));
  habit.forget();
  EXPECT_FALSE(habit.streams());
}

}  // namespace
}  // namespace urnic::device
