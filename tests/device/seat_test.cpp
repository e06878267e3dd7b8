// When an application thread that waits again and again is offered our thread's place, and for how
// long the place is kept. (seat_real_test.cpp tests the alarm and the threads.)
#include "device/seat.h"

#include <gtest/gtest.h>

namespace urnic::device {
namespace {

Instant at(std::int64_t us) {
  return Instant() + Duration::us(us);
}

TEST(Seat, IsOfferedToAThreadThatCameBackSoon) {
  Seat seat;
  EXPECT_FALSE(seat.offered());
  seat.away(at(1000));
  seat.back(at(1000) + Seat::kSoon);
  EXPECT_FALSE(seat.offered());
  seat.away(at(2000));
  seat.back(at(2000) + Seat::kSoon - Duration::ns(1));
  EXPECT_TRUE(seat.offered());
}

// One system call for several short waits, and the seat is kept for kSoon after each.
// proves: E-51
TEST(Seat, TheAlarmIsPostponedWhenLittleOfItIsLeft) {
  Seat seat;
  ASSERT_TRUE(seat.sit(at(1000)));
  seat.rise(at(1010));
  ASSERT_TRUE(seat.sit(at(1020)));
  seat.rise(at(1010) + Seat::kKept - Seat::kSoon);  // just enough left
  EXPECT_TRUE(seat.take_back(at(1010) + Seat::kKept));
  ASSERT_TRUE(seat.sit(at(2000)));
  seat.rise(at(2010));
  ASSERT_TRUE(seat.sit(at(2020)));
  const Instant last = at(2011) + Seat::kKept - Seat::kSoon;
  seat.rise(last);
  EXPECT_FALSE(seat.take_back(at(2010) + Seat::kKept));
  EXPECT_FALSE(seat.take_back(last + Seat::kSoon));
  EXPECT_TRUE(seat.take_back(last + Seat::kKept));
}

// proves: E-51
TEST(Seat, KnowsHowLongItsWaitsTake) {
  Seat seat(Duration::us(50));
  ASSERT_TRUE(seat.sit(at(1000)));
  seat.rise(at(1100));
  EXPECT_EQ(seat.lookout().begin(at(1101)), Duration());
  ASSERT_TRUE(seat.sit(at(2000)));
  seat.rise(at(2099));
  EXPECT_EQ(seat.lookout().begin(at(2100)), Duration::us(50));
}

}  // namespace
}  // namespace urnic::device
