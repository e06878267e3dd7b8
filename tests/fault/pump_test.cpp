#include "pump_ends.h"

namespace urnic::fault {
namespace {

using namespace urnic::test;

TEST_F(PumpTest, ForwardsBothWays) {
  open();
  Pump pump(a, b);
  EXPECT_FALSE(pump.run_once());
  for (std::uint32_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(send(left, segment(i)));
    ASSERT_TRUE(send(right, segment(1000 + i)));
  }
  while (pump.run_once()) {
  }
  const auto to_right = receive(right), to_left = receive(left);
  ASSERT_EQ(to_right.size(), 300u);
  ASSERT_EQ(to_left.size(), 300u);
  for (std::uint32_t i = 0; i < 300; ++i) {
    EXPECT_EQ(to_right[i], segment(i));
    EXPECT_EQ(to_left[i], segment(1000 + i));
  }
  EXPECT_EQ(pump.a_to_b().frames, 300u);
  EXPECT_EQ(pump.b_to_a().frames, 300u);
}

TEST_F(PumpTest, ASlowReceiverHoldsTheSenderBackAndLosesNothing) {
  open({.ring = 64}, {.ring = 4});
  Pump pump(a, b);
  std::uint32_t sent = 0;
  std::vector<Bytes> got;
  for (int turn = 0; turn < 3000; ++turn) {
    while (sent < 1000 && send(left, segment(sent))) ++sent;
    pump.run_once();
    if (turn % 3 == 0) {
      for (Bytes& x : receive(right)) got.push_back(std::move(x));
    }
  }
  ASSERT_EQ(got.size(), 1000u);
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(got[i], segment(i));
}

TEST_F(PumpTest, OversizedTcpFramesAreSplitAndOthersAreLost) {
  open({.max_frame = 9014}, {.max_frame = 1514});
  Pump pump(a, b);
  ASSERT_TRUE(send(left, segment(0, 8000)));
  Bytes other(3000);
  store_be16(&other[12], 0x88b5);
  ASSERT_TRUE(send(left, other));
  Bytes broken = segment(1, 8000);
  broken.back() ^= 1;  // a wrong checksum must not be repaired
  ASSERT_TRUE(send(left, broken));
  pump.run_once();
  const auto got = receive(right);
  ASSERT_EQ(got.size(), 6u);
  std::uint32_t seq = 1;
  for (const Bytes& g : got) {
    const Frame f = frame_of(g);
    expect_sound(f);
    EXPECT_LE(g.size(), 1514u);
    EXPECT_EQ(view(f).seq, seq);
    seq += view(f).payload_len;
  }
  EXPECT_EQ(seq, 8001u);
  EXPECT_EQ(pump.a_to_b().split, 1u);
  EXPECT_EQ(pump.a_to_b().too_long, 2u);
}

TEST_F(PumpTest, AWireWithoutAPeerLosesFrames) {
  open();
  right = {};
  Pump pump(a, b);
  ASSERT_TRUE(send(left, segment(0)));
  pump.run_once();
  EXPECT_EQ(pump.a_to_b().no_link, 1u);
}

TEST_F(PumpTest, EveryQueueIsServed) {
  const port::MemoryPairOptions two{.max_frame = 2000, .ring = 16, .queues = 2};
  open(two, two);
  Pump pump(a, b);
  send(left, segment(0), 0);
  send(left, segment(1), 1);
  pump.run_once();
  EXPECT_EQ(receive(right, 0), std::vector<Bytes>{segment(0)});
  EXPECT_EQ(receive(right, 1), std::vector<Bytes>{segment(1)});
}

}  // namespace
}  // namespace urnic::fault
