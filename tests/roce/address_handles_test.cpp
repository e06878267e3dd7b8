#include "roce/address_handles.h"

#include <gtest/gtest.h>

#include <set>

namespace urnic::roce {
namespace {

ib::AddressVector to(std::uint8_t host) {
  ib::AddressVector av;
  av.remote = IpAddress::v4(10, 9, 0, host);
  return av;
}

TEST(AddressHandles, EachHandleFindsOnlyItsOwnEntry) {
  AddressHandles handles;
  EXPECT_EQ(handles.find(0), nullptr);
  EXPECT_EQ(handles.find(~0u), nullptr);
  const std::uint32_t a = handles.open(to(1)), b = handles.open(to(2));
  EXPECT_NE(a, 0u);
  EXPECT_NE(a, b);
  EXPECT_EQ(handles.find(a)->av.remote, to(1).remote);
  EXPECT_EQ(handles.find(b)->av.remote, to(2).remote);
  EXPECT_EQ(handles.find(b + 1), nullptr);
  EXPECT_EQ(handles.size(), 2u);
}

TEST(AddressHandles, AClosedHandleFindsNothingAndItsEntryGetsANewOne) {
  AddressHandles handles;
  std::set<std::uint32_t> before;
  for (int i = 0; i < 4095; ++i) {
    const std::uint32_t h = handles.open(to(1));
    ASSERT_NE(h, 0u);
    ASSERT_TRUE(before.insert(h).second) << "used before";
    handles.find(h)->path.route = Route::None;
    handles.close(h);
    handles.close(h);  // a second close has no effect
    ASSERT_EQ(handles.find(h), nullptr);
  }
  EXPECT_EQ(handles.size(), 0u);
  const std::uint32_t again = handles.open(to(2));
  EXPECT_TRUE(before.contains(again));
  EXPECT_EQ(handles.find(again)->path.route, Route::Unknown);
}

TEST(AddressHandles, AreLimitedInNumber) {
  AddressHandles handles;
  for (std::uint32_t i = 0; i < AddressHandles::kMost; ++i) ASSERT_NE(handles.open(to(1)), 0u);
  EXPECT_EQ(handles.open(to(1)), 0u);
  handles.close(1u << AddressHandles::kIndexBits | 7);
  EXPECT_NE(handles.open(to(1)), 0u);
}

}  // namespace
}  // namespace urnic::roce
