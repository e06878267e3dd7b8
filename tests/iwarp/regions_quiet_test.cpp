// The cost of deregistering memory in nanoseconds, which only an otherwise idle machine shows.
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "iwarp/memory_ends.h"

namespace urnic::sim {
namespace {

class Regions : public MemoryEnds {};

// Measures not the time but its growth: the fastest of many runs, with 1000 queue pairs and with
// one.
// proves: E-54
TEST_F(Regions, AnUnusedRegionIsDeregisteredAsFastWithAThousandQueuePairs) {
  up();
  const auto fastest = [&] {
    std::int64_t best = INT64_MAX;
    for (int i = 0; i < 2000; ++i) {
      const std::uint32_t key = add(pair->left(), whole(ours), kAll);
      const auto from = std::chrono::steady_clock::now();
      EXPECT_TRUE(pair->left().engine().deregister(key));
      const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - from;
      best = std::min<std::int64_t>(best, took.count());
    }
    return best + 1;
  };
  const std::int64_t one = fastest();
  for (int i = 0; i < 1000; ++i) ASSERT_NE(pair->left().make_qp(), nullptr);
  EXPECT_LT(fastest(), 10 * one + 500);
}

}  // namespace
}  // namespace urnic::sim
