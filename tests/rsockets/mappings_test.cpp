#include "rsockets/mappings.h"

#include <gtest/gtest.h>

namespace urnic::rsockets {
namespace {

// proves: DI-19
TEST(RsocketMappings, PlacesOfThePeersTableAreAllocatedAndFreed) {
  Mappings m;
  m.open(2, 0);
  char one[8], two[8];
  EXPECT_EQ(m.free_index(), 0);
  m.add({one, 8, 100, 0, false, nullptr});
  EXPECT_EQ(m.free_index(), 1);
  m.add({two, 8, 200, 1, false, nullptr});
  EXPECT_EQ(m.free_index(), Mappings::kLocal);
  Mappings::Own out;
  EXPECT_FALSE(m.remove(one, 7, &out)) << "another length";
  ASSERT_TRUE(m.remove(one, 8, &out));
  EXPECT_EQ(out.offset, 100u);
  EXPECT_FALSE(m.remove(one, 8, &out));
  EXPECT_EQ(m.free_index(), 0);
}

TEST(RsocketMappings, EachMappingIsAnnouncedOnceAndLocalOnesNever) {
  Mappings m;
  m.open(4, 0);
  char a[8], b[8];
  m.add({a, 8, 0, Mappings::kLocal, false, nullptr});
  EXPECT_EQ(m.untold(), nullptr);
  m.add({b, 8, 0, 0, false, nullptr});
  auto* next = m.untold();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->buffer, b);
  next->told = true;
  EXPECT_EQ(m.untold(), nullptr);
}

// proves: DI-19
TEST(RsocketMappings, ThePeersMappingsAreFoundByTheirOffsets) {
  Mappings m;
  m.open(0, 2);
  EXPECT_EQ(m.find(0), nullptr) << "nothing is told";
  ASSERT_TRUE(m.on_mapping(1, {1000, {0x5000, 7, 100}}));
  EXPECT_FALSE(m.on_mapping(2, {0, {0, 0, 1}})) << "there is no such place";
  EXPECT_EQ(m.find(999), nullptr);
  ASSERT_NE(m.find(1000), nullptr);
  EXPECT_EQ(m.find(1099)->memory.address, 0x5000u);
  EXPECT_EQ(m.find(1100), nullptr);
  ASSERT_TRUE(m.on_mapping(1, {0, {0x6000, 8, 10}}));
  EXPECT_EQ(m.find(1000), nullptr) << "it is another one now";
}

}  // namespace
}  // namespace urnic::rsockets
