#include "base/deadlines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace urnic {
namespace {

struct Thing {
  Instant due = Instant::never();
  std::uint32_t place = Deadlines<Thing>::kNowhere;
};

TEST(Deadlines, TheEarliestDeadlineIsFirstAfterAnyChange) {
  Rng rng(1);
  std::vector<Thing> things(100);
  Deadlines<Thing> deadlines;
  deadlines.reserve(things.size());
  EXPECT_TRUE(deadlines.next().is_never());
  for (int i = 0; i < 20'000; ++i) {
    Thing& t = things[rng.below(things.size())];
    deadlines.set(t, rng.chance(0.2) ? Instant::never()
                                     : Instant::from_ns(static_cast<std::int64_t>(rng.below(500))));
    if (rng.chance(0.1) && !deadlines.next().is_never()) {
      const Instant next = deadlines.next();
      Thing* const first = deadlines.take();
      EXPECT_TRUE(first->due.is_never());
      EXPECT_EQ(first->place, Deadlines<Thing>::kNowhere);
      first->due = next;  // restored, for the comparison below
      Instant least = Instant::never();
      for (const Thing& other : things) least = earlier(least, other.due);
      first->due = Instant::never();
      ASSERT_EQ(next, least);
    }
    const auto least = std::min_element(things.begin(), things.end(),
                                        [](auto& x, auto& y) { return x.due < y.due; });
    ASSERT_EQ(deadlines.next(), least->due) << i;
  }
}

}  // namespace
}  // namespace urnic
