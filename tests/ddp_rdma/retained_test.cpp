#include "ddp_rdma/retained.h"

#include <gtest/gtest.h>

namespace urnic::ddp {
namespace {

class RetainedTest : public ::testing::Test {
 protected:
  void cut(std::uint32_t wire, bool kept = false) {
    Record& r = retained.cut(wire);
    if (kept) r.kept = retained.kept().allocate(wire);
  }
  BufferPool pool;
  Retained retained{&pool};
};

TEST_F(RetainedTest, HoldsFromTheOldestToTheEnd) {
  EXPECT_FALSE(retained.holds(StreamOffset(0)));
  cut(100);
  cut(50);
  EXPECT_EQ(retained.end(), StreamOffset(150));
  EXPECT_TRUE(retained.holds(StreamOffset(0)));
  EXPECT_TRUE(retained.holds(StreamOffset(149)));
  EXPECT_FALSE(retained.holds(StreamOffset(150)));
  std::uint32_t skip = 0;
  EXPECT_EQ(retained.find(StreamOffset(120), &skip), 1u);
  EXPECT_EQ(skip, 20u);
  EXPECT_EQ(retained.end_of_oldest(), StreamOffset(100));
  retained.pop_oldest();
  EXPECT_FALSE(retained.holds(StreamOffset(99)));
  EXPECT_EQ(retained.end_of_oldest(), StreamOffset(150));
}

TEST_F(RetainedTest, TheNumberOfFpdusInFlightIsBounded) {
  while (retained.room() != 0) cut(64);
  EXPECT_EQ(retained.size(), 1u << 20);
  retained.pop_oldest();
  EXPECT_EQ(retained.room(), 1u);
  cut(64);
  EXPECT_EQ(retained.room(), 0u);
  EXPECT_EQ(retained.end_of_oldest(), StreamOffset(128));
}

TEST_F(RetainedTest, OffsetsBeyondFourGigabytes) {
  constexpr std::uint32_t kStep = 1u << 30;
  for (int i = 0; i < 9; ++i) {
    cut(kStep);
    if (retained.size() > 2) retained.pop_oldest();
  }
  EXPECT_EQ(retained.end(), StreamOffset(std::uint64_t{9} * kStep));
  EXPECT_EQ(retained.end_of_oldest(), StreamOffset(std::uint64_t{8} * kStep));
  EXPECT_TRUE(retained.holds(StreamOffset(std::uint64_t{7} * kStep)));
  EXPECT_FALSE(retained.holds(StreamOffset(std::uint64_t{7} * kStep - 1)));
  EXPECT_FALSE(retained.holds(StreamOffset(std::uint64_t{3} * kStep))) << "the same low half";
}

TEST_F(RetainedTest, OnlyUnsentRecordsCanBeTakenBack) {
  cut(100, true);
  cut(50, true);
  cut(70);
  retained.note_sent(StreamOffset(100));
  EXPECT_FALSE(retained.take_back(0));
  EXPECT_EQ(retained.size(), 3u);
  EXPECT_TRUE(retained.take_back(1));
  EXPECT_EQ(retained.size(), 1u);
  EXPECT_EQ(retained.end(), StreamOffset(100));
  EXPECT_EQ(retained.sent(), StreamOffset(100));
}

TEST_F(RetainedTest, OwnsNoMemoryWhenAllIsAcknowledgedOrDropped) {
  for (int i = 0; i < 500; ++i) cut(1460, i % 3 == 0);
  EXPECT_NE(pool.in_use(), 0u);
  for (int i = 0; i < 200; ++i) retained.pop_oldest();
  retained.drop();
  EXPECT_EQ(retained.end(), StreamOffset(500 * 1460)) << "the stream stands where it stood";
  EXPECT_EQ(retained.kept().chunks(), 0u);
  EXPECT_EQ(pool.in_use(), 0u);
  cut(8, true);
  retained.restart();
  EXPECT_EQ(retained.end(), StreamOffset());
}

}  // namespace
}  // namespace urnic::ddp
