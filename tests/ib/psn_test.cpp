#include "ib/psn.h"

#include <gtest/gtest.h>

namespace urnic::ib {
namespace {

TEST(Psn, CountsModulo2To24) {
  EXPECT_EQ(Psn(0xffffff) + 1, Psn(0));
  EXPECT_EQ(Psn(0) - 1, Psn(0xffffff));
  EXPECT_EQ(Psn(3) - Psn(0xfffffe), 5u);
  EXPECT_EQ(Psn(0x1000005), Psn(5));
  Psn p(0xffffff);
  EXPECT_EQ(++p, Psn(0));
}

TEST(Psn, BeforeFollowsTheShorterDistance) {
  EXPECT_TRUE(Psn(0xfffffe).before(Psn(2)));
  EXPECT_FALSE(Psn(2).before(Psn(0xfffffe)));
  EXPECT_FALSE(Psn(7).before(Psn(7)));
  EXPECT_TRUE(Psn(0).before(Psn(kPsnWindow - 1)));
  EXPECT_FALSE(Psn(0).before(Psn(kPsnWindow)));  // as far one way as the other
  EXPECT_FALSE(Psn(kPsnWindow).before(Psn(0)));
}

TEST(Psn, WithinIncludesBothEnds) {
  EXPECT_TRUE(Psn(0xfffffe).within(Psn(0xfffffe), Psn(1)));
  EXPECT_TRUE(Psn(1).within(Psn(0xfffffe), Psn(1)));
  EXPECT_FALSE(Psn(2).within(Psn(0xfffffe), Psn(1)));
  EXPECT_FALSE(Psn(0xfffffd).within(Psn(0xfffffe), Psn(1)));
}

// proves: IB-10
TEST(Psn, ARequestPsnIsExpectedInvalidOrADuplicateByHalfOfTheSpace) {
  for (const std::uint32_t expected : {0u, 5u, 0x7fffffu, 0x800000u, 0xffffffu}) {
    const Psn e(expected);
    EXPECT_EQ(region(e, e), PsnRegion::Expected);
    EXPECT_EQ(region(e + 1, e), PsnRegion::Invalid);
    EXPECT_EQ(region(e + kPsnWindow, e), PsnRegion::Invalid);
    EXPECT_EQ(region(e + (kPsnWindow + 1), e), PsnRegion::Duplicate);
    EXPECT_EQ(region(e - 1, e), PsnRegion::Duplicate);
  }
}

TEST(Psn, AReadTakesAtLeastOnePacket) {
  EXPECT_EQ(packets_of(0, 1024), 1u);
  EXPECT_EQ(packets_of(1, 1024), 1u);
  EXPECT_EQ(packets_of(1024, 1024), 1u);
  EXPECT_EQ(packets_of(1025, 1024), 2u);
  EXPECT_EQ(packets_of(1u << 31, 256), kPsnWindow);
}

}  // namespace
}  // namespace urnic::ib
