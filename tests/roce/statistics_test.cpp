// Counters of destroyed queue pairs are added to the totals.
#include "roce/statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>

namespace urnic::roce {
namespace {

// Each counter has a different value, so a counter that is left out or added to another is found.
template <class Counters>
void expect_each_is_added() {
  std::array<std::uint64_t, sizeof(Counters) / sizeof(std::uint64_t)> one, sum;
  for (std::size_t i = 0; i < one.size(); ++i) {
    one[i] = std::uint64_t{1} << i;
    sum[i] = 3 * one[i];
  }
  auto to = std::bit_cast<Counters>(one);
  add(&to, std::bit_cast<Counters>(one));
  add(&to, std::bit_cast<Counters>(one));
  EXPECT_EQ(std::bit_cast<decltype(sum)>(to), sum);
}

TEST(RoceStatistics, EveryCounterOfAQueuePairIsAdded) {
  expect_each_is_added<UnreliableCounters>();
  expect_each_is_added<CongestionCounters>();
  expect_each_is_added<MessageCounters>();
  expect_each_is_added<ib::RequesterCounters>();
  expect_each_is_added<ib::ResponderCounters>();
}

}  // namespace
}  // namespace urnic::roce
