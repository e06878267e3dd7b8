// The pending output of both sides after a burst, and whether it waits.
#include "engine/to_send.h"

#include <gtest/gtest.h>

namespace urnic::engine {
namespace {

constexpr ToSend kNothing{false, false}, kAcks{true, true}, kAcksWithoutTurn{true, false},
    kMore{false, true};

// proves: S-11
TEST(ToSend, AcksOfOneSideWaitIfTheOtherHasNothing) {
  EXPECT_TRUE(acks_alone(kAcks, kNothing));
  EXPECT_TRUE(acks_alone(kNothing, kAcks));
  EXPECT_TRUE(acks_alone(kAcks, kAcks));
  EXPECT_TRUE(acks_alone(kAcksWithoutTurn, kNothing));
}

TEST(ToSend, NothingWaitsBesideAPacketThatMayNotWait) {
  EXPECT_FALSE(acks_alone(kAcks, kMore));
  EXPECT_FALSE(acks_alone(kMore, kAcks));
  EXPECT_FALSE(acks_alone(kNothing, kNothing)) << "nothing is there to wait";
  EXPECT_FALSE(acks_alone(kMore, kNothing));
}

}  // namespace
}  // namespace urnic::engine
