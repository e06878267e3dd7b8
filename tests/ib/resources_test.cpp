#include "ib/resources.h"

#include <gtest/gtest.h>

namespace urnic::ib {
namespace {

Resource read_at(std::uint32_t psn, std::uint32_t packets = 2) {
  Resource r;
  r.family = Family::Read;
  r.psn = Psn(psn);
  r.packets = packets;
  r.length = packets * 256;
  return r;
}

TEST(Resources, AreAnsweredInOrder) {
  Resources all(3);
  EXPECT_EQ(all.due(), nullptr);
  all.add(read_at(10));
  all.add(read_at(12));
  ASSERT_NE(all.due(), nullptr);
  EXPECT_EQ(all.due()->psn, Psn(10));
  all.done(all.due());
  EXPECT_EQ(all.due()->psn, Psn(12));
  all.done(all.due());
  EXPECT_FALSE(all.any_due());
}

TEST(Resources, TheOldestAnsweredOneMakesRoom) {
  Resources all(2);
  all.add(read_at(10));
  all.add(read_at(12));
  EXPECT_TRUE(all.full());
  all.done(all.due());
  EXPECT_FALSE(all.full());
  all.add(read_at(14));
  EXPECT_TRUE(all.full());
  EXPECT_EQ(all.find(Psn(10)), nullptr);
  EXPECT_NE(all.find(Psn(12)), nullptr);
  EXPECT_NE(all.find(Psn(15)), nullptr);
  EXPECT_EQ(all.find(Psn(16)), nullptr);
}

TEST(Resources, ADuplicateThatWaitsDoesNotKeepANewOneOut) {
  Resources all(1);
  all.add(read_at(10));
  all.done(all.due());
  all.ask_again(all.find(Psn(10)), {Psn(10), 0, 512, 0});
  EXPECT_FALSE(all.full());
  all.add(read_at(12));
  EXPECT_EQ(all.due()->psn, Psn(12));
  all.done(all.due());
  EXPECT_FALSE(all.any_due());
}

TEST(Resources, ADepthOfZeroIsFull) {
  EXPECT_TRUE(Resources(0).full());
}

TEST(Resources, AreFoundAcrossTheWrapOfPsns) {
  Resources all(2);
  all.add(read_at(0xfffffe, 4));
  EXPECT_EQ(all.find(Psn(0xfffffd)), nullptr);
  EXPECT_NE(all.find(Psn(0xfffffe)), nullptr);
  EXPECT_NE(all.find(Psn(1)), nullptr);
  EXPECT_EQ(all.find(Psn(2)), nullptr);
}

TEST(Resources, ResponsesAfterADuplicateBeginAnew) {
  Resources all(3);
  all.add(read_at(10));
  all.add(read_at(12));
  all.due()->answer.sent = 1;
  all.done(all.due());
  all.due()->answer.sent = 1;  // the one at 12 is in progress
  all.ask_again(all.find(Psn(11)), {Psn(11), 256, 256, 0});
  EXPECT_EQ(all.due()->answer.psn, Psn(11));
  EXPECT_EQ(all.find(Psn(12))->answer.sent, 0u);
}

}  // namespace
}  // namespace urnic::ib
