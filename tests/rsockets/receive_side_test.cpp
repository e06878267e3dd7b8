#include "rsockets/receive_side.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace urnic::rsockets {
namespace {

constexpr std::uint32_t kBuffer = 64;
constexpr std::uint16_t kCredits = 8;

struct ReceiveSideTest : testing::Test {
  ReceiveSideTest() : buffer(kBuffer), into(kBuffer) {
    std::iota(buffer.begin(), buffer.end(), std::uint8_t{0});
    side.open(kBuffer, kCredits);
  }
  std::vector<std::uint8_t> read(std::uint64_t n) {
    into.resize(n);
    into.resize(side.read(buffer, into.data(), n));
    return into;
  }
  ReceiveSide side;
  std::vector<std::uint8_t> buffer, into;
};

// proves: DI-14
TEST_F(ReceiveSideTest, TheSecondHalfIsGrantedFirst) {
  ASSERT_TRUE(side.grant_due());
  const auto g = side.grant();
  EXPECT_EQ(g.limit, kCredits);
  EXPECT_EQ(g.offset, kBuffer / 2);
  EXPECT_FALSE(side.grant_due());
}

// proves: DI-14
TEST_F(ReceiveSideTest, MessagesFormOneStreamThatWrapsAroundTheBuffer) {
  side.grant();
  ASSERT_TRUE(side.on_data(32));
  ASSERT_TRUE(side.on_data(20));
  EXPECT_EQ(side.readable(), 52u);
  EXPECT_EQ(read(40).back(), 39);
  ASSERT_TRUE(side.grant_due());
  EXPECT_EQ(side.grant().offset, 0u) << "the first half again";
  ASSERT_TRUE(side.on_data(12));
  ASSERT_TRUE(side.on_data(10));
  const auto last = read(100);
  ASSERT_EQ(last.size(), 34u);
  EXPECT_EQ(last[23], 63);
  EXPECT_EQ(last[24], 0) << "round the end";
  EXPECT_FALSE(side.has_data());
}

TEST_F(ReceiveSideTest, PeekDoesNotConsume) {
  ASSERT_TRUE(side.on_data(5));
  EXPECT_EQ(side.peek(buffer, into.data(), 3), 3u);
  EXPECT_EQ(side.readable(), 5u);
  EXPECT_EQ(read(5).size(), 5u);
  EXPECT_EQ(side.peek(buffer, into.data(), 3), 0u);
}

// proves: DI-14
TEST_F(ReceiveSideTest, CreditsAreDueWhenHalfTheirMessagesAreRead) {
  side.grant();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(side.on_data(2));
  read(7);
  EXPECT_FALSE(side.grant_due()) << "the fourth is read in part";
  read(1);
  ASSERT_TRUE(side.grant_due());
  const auto g = side.grant();
  EXPECT_EQ(g.limit, kCredits + 4);
  EXPECT_FALSE(g.offset) << "half the buffer is not free";
  EXPECT_FALSE(side.grant_due());
}

TEST_F(ReceiveSideTest, AMappingUsesACreditAndReturnsItAtOnce) {
  side.grant();
  for (int i = 0; i < 4; ++i) side.on_mapping();
  ASSERT_TRUE(side.grant_due());
  EXPECT_EQ(side.grant().limit, kCredits + 4);
}

// proves: DI-14
TEST_F(ReceiveSideTest, APeerThatWritesTooMuchIsDetected) {
  EXPECT_FALSE(side.on_data(kBuffer / 2 + 1)) << "it has the first half only";
  EXPECT_TRUE(side.on_data(kBuffer / 2));
  EXPECT_FALSE(side.on_data(1));
  side.grant();
  for (int i = 1; i < kCredits; ++i) ASSERT_TRUE(side.on_data(1));
  EXPECT_FALSE(side.on_data(1)) << "it has no credit";
}

TEST_F(ReceiveSideTest, AnEmptyMessageIsNotTheEndOfInput) {
  EXPECT_TRUE(side.on_data(0));
  EXPECT_FALSE(side.has_data());
}

TEST_F(ReceiveSideTest, NumbersWrapAroundInSixteenBits) {
  side.open(kBuffer, kCredits);
  std::uint16_t limit = side.grant().limit, sent = 0;
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_NE(sent, limit) << "the peer would wait for ever";
    ASSERT_TRUE(side.on_data(1)) << i;
    ++sent;
    read(1);
    if (side.grant_due()) limit = side.grant().limit;
  }
}

}  // namespace
}  // namespace urnic::rsockets
