// An application whose polls find nothing yields its core only where that helps.
#include "device/poll_wait.h"

#include <gtest/gtest.h>

namespace urnic::device {
namespace {

const Instant kStart = Instant() + Duration::ms(7);
using For = PollWait::For;
using Core = PollWait::Core;

// proves: E-51
TEST(PollWait, WaitingForSocketRoomYieldsAtOnce) {
  PollWait wait;
  EXPECT_EQ(wait.in_vain(For::SocketRoom, kStart), Core::Yielded);
}

// proves: E-51
TEST(PollWait, WaitingForPortRoomYieldsOnlyAfterAWhile) {
  PollWait wait;
  EXPECT_EQ(wait.in_vain(For::PortRoom, kStart), Core::Kept);
  EXPECT_EQ(wait.in_vain(For::PortRoom, kStart + PollWait::kPatience - Duration::ns(1)),
            Core::Kept);
  EXPECT_EQ(wait.in_vain(For::PortRoom, kStart + PollWait::kPatience), Core::Yielded);
  EXPECT_EQ(wait.in_vain(For::PortRoom, kStart + PollWait::kPatience + Duration::us(1)),
            Core::Yielded);
}

// proves: E-51
TEST(PollWait, WaitingForAnArrivalYieldsNowAndThen) {
  PollWait wait;
  EXPECT_EQ(wait.in_vain(For::Arrival, kStart), Core::Kept);
  EXPECT_EQ(wait.in_vain(For::Arrival, kStart + PollWait::kPatience - Duration::ns(1)), Core::Kept);
  const Instant left = kStart + PollWait::kPatience;
  EXPECT_EQ(wait.in_vain(For::Arrival, left), Core::Yielded);
  EXPECT_EQ(wait.in_vain(For::Arrival, left + Duration::us(1)), Core::Kept);
  EXPECT_EQ(wait.in_vain(For::Arrival, left + PollWait::kPatience), Core::Yielded);
}

// proves: E-51
TEST(PollWait, WaitsOnAContendedCoreAreSleptThrough) {
  PollWait wait;
  wait.yielded(kStart, kStart + PollWait::kTaken - Duration::ns(1));
  EXPECT_EQ(wait.in_vain(For::SocketRoom, kStart + PollWait::kTaken), Core::Yielded);
  const Instant back = kStart + Duration::ms(3);
  wait.yielded(kStart, back);
  EXPECT_EQ(wait.in_vain(For::SocketRoom, back), Core::SleptOn);
  EXPECT_EQ(wait.in_vain(For::SocketRoom, back + PollWait::kBelieved - Duration::ns(1)),
            Core::SleptOn);
  EXPECT_EQ(wait.in_vain(For::SocketRoom, back + PollWait::kBelieved), Core::Yielded);
}

// proves: E-51
TEST(PollWait, AWaitOnAContendedCoreSleepsUntilTheArrival) {
  PollWait wait;
  const Instant back = kStart + Duration::ms(3);
  wait.yielded(kStart, back);
  EXPECT_EQ(wait.in_vain(For::Arrival, back), Core::Kept);
  EXPECT_EQ(wait.in_vain(For::Arrival, back + Duration::us(60)), Core::SleptOn);
  EXPECT_EQ(wait.in_vain(For::Arrival, back + Duration::us(61)), Core::SleptOn);
  wait.forget();
  EXPECT_EQ(wait.in_vain(For::Arrival, back + Duration::us(70)), Core::Kept);
}

// proves: E-51
TEST(PollWait, StartsAgainWhenAPollFindsSomething) {
  PollWait wait;
  EXPECT_EQ(wait.in_vain(For::PortRoom, kStart), Core::Kept);
  wait.forget();
  EXPECT_EQ(wait.in_vain(For::PortRoom, kStart + Duration::us(60)), Core::Kept);
  EXPECT_EQ(wait.in_vain(For::PortRoom, kStart + Duration::us(110)), Core::Yielded);
}

}  // namespace
}  // namespace urnic::device
