// Numbers of queue pairs: there are 2^24, which a long-running engine must reuse.
#include "verbs/queue_pairs.h"

#include <gtest/gtest.h>

#include <memory>

namespace urnic::verbs {
namespace {

std::unique_ptr<verbs::QueuePair> numbered(std::uint32_t number) {
  return std::make_unique<verbs::QueuePair>(number, verbs::kIwarpRules, verbs::Service::Rc,
                                            verbs::WorkQueueSizes{}, verbs::WorkQueueLayout{},
                                            nullptr, nullptr);
}

// proves: E-49
TEST(QueuePairNumbers, AreReusedAfterAllHaveBeenUsedExceptThoseInUse) {
  QueuePairs qps({1, 2});
  const std::uint32_t first = qps.new_number();
  verbs::QueuePair* const kept = qps.add(numbered(first));
  verbs::QueuePair* const gone = qps.add(numbered(qps.new_number()));
  const std::uint32_t second = gone->number();
  qps.take(gone);
  for (std::uint32_t i = 3; i <= 0xffffff; ++i) ASSERT_NE(qps.new_number(), 0u);
  EXPECT_EQ(qps.new_number(), second) << "the longest unused";
  EXPECT_TRUE(qps.has(first));
  EXPECT_EQ(kept->number(), first);
}

}  // namespace
}  // namespace urnic::verbs
