#include "verbs/sge_walk.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace urnic::verbs {
namespace {

const std::vector<Sge> kThree{{.addr = 0, .length = 4, .lkey = 1},
                              {.addr = 0, .length = 0, .lkey = 2},
                              {.addr = 0, .length = 6, .lkey = 3}};

// "1@2+2 " means two bytes starting at byte 2 of the SGE with lkey 1.
std::string walk(std::uint64_t offset, std::uint64_t length, bool* whole) {
  std::string seen;
  *whole = for_each_piece(
      kThree, offset, length, [&](const Sge& sge, std::uint64_t at, std::uint64_t n) {
        seen += std::to_string(sge.lkey) + "@" + std::to_string(at) + "+" + std::to_string(n) + " ";
        return true;
      });
  return seen;
}

TEST(SgeWalk, EachPieceIsVisitedOnceInOrderAndEmptySgesAreNot) {
  bool whole = false;
  EXPECT_EQ(walk(0, 10, &whole), "1@0+4 3@0+6 ");
  EXPECT_TRUE(whole);
  EXPECT_EQ(walk(2, 5, &whole), "1@2+2 3@0+3 ");
  EXPECT_TRUE(whole);
  EXPECT_EQ(walk(4, 6, &whole), "3@0+6 ");
  EXPECT_TRUE(whole);
  EXPECT_EQ(walk(9, 1, &whole), "3@5+1 ");
  EXPECT_TRUE(whole);
}

TEST(SgeWalk, ZeroBytesAlwaysSucceed) {
  bool whole = false;
  EXPECT_EQ(walk(10, 0, &whole), "");
  EXPECT_TRUE(whole);
  EXPECT_EQ(walk(11, 0, &whole), "");
  EXPECT_TRUE(whole);
}

TEST(SgeWalk, AListThatEndsTooEarlyIsReported) {
  bool whole = true;
  EXPECT_EQ(walk(9, 2, &whole), "3@5+1 ");
  EXPECT_FALSE(whole);
  whole = true;
  EXPECT_EQ(walk(10, 1, &whole), "");
  EXPECT_FALSE(whole);
}

TEST(SgeWalk, TheFunctionCanEndTheWalk) {
  int calls = 0;
  EXPECT_FALSE(for_each_piece(kThree, 0, 10, [&](const Sge&, std::uint64_t, std::uint64_t) {
    ++calls;
    return false;
  }));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace urnic::verbs
