#include "base/nearest.h"

#include <gtest/gtest.h>

namespace urnic {
namespace {

TEST(Nearest, DistancesCountLettersAndSwapsOfNeighbours) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("port", "prot"), 1u);
  EXPECT_EQ(edit_distance("help", "hlep"), 1u);
  EXPECT_EQ(edit_distance("mtu", "mtuu"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Nearest, AHintIsGivenOnlyForASimilarName) {
  const std::vector<std::string> known = {"mem", "memif", "tap", "dgram", "dpdk", "tcp"};
  EXPECT_EQ(nearest_hint("memfi", known), "; the nearest is 'memif'");
  EXPECT_EQ(nearest_hint("dg", known), "; the nearest is 'dgram'");
  EXPECT_EQ(nearest_hint("nonsense", known), "");
  EXPECT_EQ(nearest_hint(std::string(5000, 'x'), known), "");
  EXPECT_EQ(nearest_hint("x", {}), "");
}

}  // namespace
}  // namespace urnic
