// Connections whose names are held back: which is the oldest, and what memory an address costs.
#include "ib_cm/resting.h"

#include <gtest/gtest.h>

#include "tests/support/allocator.h"

namespace urnic::ib_cm {
namespace {

namespace testing = urnic::testing;

const IpAddress kHere = IpAddress::v4(10, 77, 0, 1);
const IpAddress kPeer = IpAddress::v4(10, 77, 0, 2), kOther = IpAddress::v4(10, 77, 0, 3);

struct RestingList : ::testing::Test {
  RestingList() {
    for (Connection* c : {&first, &second}) c->addresses = {kHere, kPeer};
    other.addresses = {kHere, kOther};
  }
  Connection first, second, other;
  Resting resting;
};

// In whatever order they leave, the rest keeps its order.
TEST_F(RestingList, TheOldestOfAllAndOfEachAddressIsAtHand) {
  for (Connection* c : {&first, &other, &second}) resting.enter(*c);
  EXPECT_EQ(resting.size(), 3u);
  EXPECT_EQ(resting.of(kPeer), 2u);
  EXPECT_EQ(resting.oldest(), &first);
  EXPECT_EQ(resting.oldest_of(kOther), &other);
  resting.leave(first);
  EXPECT_EQ(resting.oldest(), &other);
  EXPECT_EQ(resting.oldest_of(kPeer), &second);
  resting.leave(first);  // it rests no more
  resting.enter(first);
  EXPECT_EQ(resting.oldest_of(kPeer), &second);
  EXPECT_EQ(resting.of(kPeer), 2u);
  for (Connection* c : {&second, &first, &other}) resting.leave(*c);
  EXPECT_EQ(resting.size(), 0u);
  EXPECT_EQ(resting.oldest(), nullptr);
  EXPECT_EQ(resting.oldest_of(kPeer), nullptr);
}

// Anybody can come from many addresses: one costs memory only while a connection with it rests.
TEST_F(RestingList, AnAddressCostsMemoryOnlyWhileOneOfItsConnectionsRests) {
  const std::uint64_t before = testing::allocated_bytes();
  resting.enter(first);
  const std::uint64_t one = testing::allocated_bytes();
  EXPECT_GT(one, before);
  resting.enter(second);
  EXPECT_EQ(testing::allocated_bytes(), one);
  resting.leave(first);
  EXPECT_EQ(testing::allocated_bytes(), one);
  EXPECT_EQ(resting.of(kPeer), 1u);
  resting.leave(second);
  EXPECT_EQ(testing::allocated_bytes(), before);
}

TEST_F(RestingList, WithoutMemoryItIsListedAmongAllAlone) {
  {
    const testing::NoMemory none(0);
    resting.enter(first);
    EXPECT_EQ(none.failed(), 1u);
  }
  resting.enter(second);
  EXPECT_EQ(resting.oldest(), &first);
  EXPECT_EQ(resting.of(kPeer), 1u);
  EXPECT_EQ(resting.oldest_of(kPeer), &second);
  resting.leave(first);
  EXPECT_EQ(resting.of(kPeer), 1u);
  EXPECT_EQ(resting.oldest(), &second);
}

}  // namespace
}  // namespace urnic::ib_cm
