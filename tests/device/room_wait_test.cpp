// Who polls and waits for room leaves its core to others only where that helps.
#include "device/room_wait.h"

#include <gtest/gtest.h>

namespace urnic::engine {
namespace {

const Instant kStart = Instant() + Duration::ms(7);
constexpr bool kSocket = true, kPort = true, kNone = false;

TEST(RoomWait, OfASocketLeavesTheCoreAtOnce) {
  RoomWait wait;
  EXPECT_TRUE(wait.leaves_core(kSocket, kNone, kStart));
}

TEST(RoomWait, OfAPortLeavesTheCoreWhenNobodyTakesFromItForLong) {
  RoomWait wait;
  EXPECT_FALSE(wait.leaves_core(kNone, kPort, kStart));
  EXPECT_FALSE(wait.leaves_core(kNone, kPort, kStart + RoomWait::kPatience - Duration::ns(1)));
  EXPECT_TRUE(wait.leaves_core(kNone, kPort, kStart + RoomWait::kPatience));
}

TEST(RoomWait, BeginsAnewWithRoomOrWithSomethingDone) {
  RoomWait wait;
  EXPECT_FALSE(wait.leaves_core(kNone, kPort, kStart));
  EXPECT_FALSE(wait.leaves_core(kNone, kNone, kStart + Duration::us(10)));
  EXPECT_FALSE(wait.leaves_core(kNone, kPort, kStart + Duration::us(60)));
  wait.forget();
  EXPECT_FALSE(wait.leaves_core(kNone, kPort, kStart + Duration::us(120)));
  EXPECT_TRUE(wait.leaves_core(kNone, kPort, kStart + Duration::us(170)));
}

}  // namespace
}  // namespace urnic::engine
