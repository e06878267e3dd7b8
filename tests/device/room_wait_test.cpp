// Who polls and waits for room leaves its core to others only where that helps.
#include "device/room_wait.h"

#include <gtest/gtest.h>

namespace urnic::engine {
namespace {

const Instant kStart = Instant() + Duration::ms(7);
constexpr bool kSocket = true, kPort = false;

// proves: E-51
TEST(RoomWait, OfASocketLeavesTheCoreAtOnce) {
  RoomWait wait;
  EXPECT_TRUE(wait.leaves_core(kSocket, kStart));
}

// proves: E-51
TEST(RoomWait, OfAPortLeavesTheCoreWhenNobodyTakesFromItForLong) {
  RoomWait wait;
  EXPECT_FALSE(wait.leaves_core(kPort, kStart));
  EXPECT_FALSE(wait.leaves_core(kPort, kStart + RoomWait::kPatience - Duration::ns(1)));
  EXPECT_TRUE(wait.leaves_core(kPort, kStart + RoomWait::kPatience));
}

// proves: E-51
TEST(RoomWait, BeginsAnewWithRoomOrWithSomethingDone) {
  RoomWait wait;
  EXPECT_FALSE(wait.leaves_core(kPort, kStart));
  wait.forget();
  EXPECT_FALSE(wait.leaves_core(kPort, kStart + Duration::us(60)));
  EXPECT_TRUE(wait.leaves_core(kPort, kStart + Duration::us(110)));
}

}  // namespace
}  // namespace urnic::engine
