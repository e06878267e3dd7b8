// The table of GIDs while addresses are added and removed.
#include "dropin/gid_slots.h"

#include <gtest/gtest.h>

namespace urnic::dropin {
namespace {

ibv_gid gid(unsigned n) {
  ibv_gid g{};
  g.raw[10] = g.raw[11] = 0xff;
  g.raw[12] = 10;
  g.raw[14] = static_cast<std::uint8_t>(n >> 8);
  g.raw[15] = static_cast<std::uint8_t>(n);
  return g;
}

std::vector<ibv_gid> gids(std::initializer_list<unsigned> numbers) {
  std::vector<ibv_gid> all;
  for (const unsigned n : numbers) all.push_back(gid(n));
  return all;
}

TEST(GidSlotsTest, ANewAddressMovesNoOther) {
  GidSlots slots;
  EXPECT_TRUE(slots.update(gids({1, 3})));
  EXPECT_FALSE(slots.update(gids({1, 3}))) << "nothing came or went";
  EXPECT_FALSE(slots.update(gids({3, 1}))) << "the kernel lists them in another order";
  EXPECT_TRUE(slots.update(gids({1, 2, 3})));
  EXPECT_EQ(slots.find(gid(1)), 0u);
  EXPECT_EQ(slots.find(gid(3)), 1u);
  EXPECT_EQ(slots.find(gid(2)), 2u);
  EXPECT_EQ(slots.size(), 3u);
}

TEST(GidSlotsTest, ARemovedAddressLeavesAHoleThatTheNextOneFills) {
  GidSlots slots;
  slots.update(gids({1, 2, 3}));
  EXPECT_TRUE(slots.update(gids({1, 3})));
  EXPECT_EQ(slots.size(), 3u);
  EXPECT_TRUE(is_hole(slots.at(1)));
  EXPECT_EQ(slots.find(gid(2)), std::nullopt);
  EXPECT_EQ(slots.find(gid(3)), 2u);
  EXPECT_EQ(slots.find(ibv_gid{}), std::nullopt) << "a hole is nobody's";
  EXPECT_FALSE(slots.update(gids({1, 3})));
  EXPECT_TRUE(slots.update(gids({1, 3, 4, 5})));
  EXPECT_EQ(slots.find(gid(4)), 1u);
  EXPECT_EQ(slots.find(gid(5)), 3u);
}

TEST(GidSlotsTest, ReplacingAnAddressIsAChange) {
  GidSlots slots;
  slots.update(gids({1}));
  EXPECT_TRUE(slots.update(gids({2})));
  EXPECT_EQ(slots.find(gid(2)), 0u);
  EXPECT_EQ(slots.size(), 1u);
}

TEST(GidSlotsTest, TheTableHoldsNoMoreThanAnIndexCanName) {
  GidSlots slots;
  std::vector<ibv_gid> many;
  for (unsigned i = 0; i < 300; ++i) many.push_back(gid(i));
  EXPECT_TRUE(slots.update(many));
  EXPECT_EQ(slots.size(), GidSlots::kMost);
  EXPECT_FALSE(slots.update(many)) << "what has no room is not tried again as news";
}

}  // namespace
}  // namespace urnic::dropin
