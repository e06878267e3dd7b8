#include "ddp_rdma/control_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace urnic::ddp {
namespace {

struct ControlQueueTest : ::testing::Test {
  BufferPool pool;
  KeptBytes kept{&pool};
  ControlQueue queue;
};

TEST_F(ControlQueueTest, KeepsCopiesInOrder) {
  std::array<std::uint8_t, 4> bytes = {1, 2, 3, 4};
  queue.add_raw(&kept, bytes);
  queue.add_ulpdu(&kept, {bytes.data(), 3});
  bytes.fill(9);
  ASSERT_FALSE(queue.empty());
  EXPECT_TRUE(queue.front().raw);
  EXPECT_EQ(queue.front().len, 4u);
  EXPECT_EQ(queue.front().block[3], 4u);
  kept.free(queue.front().block);
  queue.pop();
  EXPECT_FALSE(queue.front().raw);
  EXPECT_EQ(queue.front().len, 3u);
  EXPECT_EQ(queue.front().block[0], 1u);
  queue.clear(&kept);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(pool.in_use(), 0u) << "an empty one owns nothing (P7)";
}

TEST_F(ControlQueueTest, IgnoresBytesThatCannotBeSent) {
  const std::vector<std::uint8_t> much(KeptBytes::kMaxBlock + 1);
  queue.add_raw(&kept, {});
  queue.add_raw(&kept, much);
  queue.add_ulpdu(&kept, {much.data(), 1});
  queue.add_ulpdu(&kept, {much.data(), mpa::kMaxUlpdu + 1});
  EXPECT_TRUE(queue.empty());
}

TEST_F(ControlQueueTest, UlpdusAreEstimatedAsFpdusAndRawBytesAsTheyAre) {
  const std::array<std::uint8_t, 18> bytes{};
  FpduSizes sizes(false);
  EXPECT_EQ(queue.estimate(sizes), 0u);
  queue.add_raw(&kept, bytes);
  queue.add_ulpdu(&kept, bytes);
  EXPECT_EQ(queue.estimate(sizes), 18u + 24u);
  sizes.set_framing({mpa::Policy::Markers, 0});
  EXPECT_EQ(queue.estimate(sizes), 18u + 28u) << "a marker may lie in it";
  queue.clear(&kept);
}

}  // namespace
}  // namespace urnic::ddp
