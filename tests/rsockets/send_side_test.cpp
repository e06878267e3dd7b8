#include "rsockets/send_side.h"

#include <gtest/gtest.h>

namespace urnic::rsockets {
namespace {

constexpr std::uint32_t kRing = 8192, kSlots = 16;

SendSide begun(std::uint16_t credits = 100, Entry first = {0x1000, 7, 1 << 20}) {
  SendSide s;
  s.open(kRing, kSlots);
  s.begin(credits, first);
  return s;
}

TEST(RsocketSendSide, APieceUsesACreditTwoSlotsAndItsBytesOfTheRing) {
  SendSide s = begun();
  const auto p = s.take(3000, false);
  EXPECT_EQ(p.to, (Entry{0x1000, 7, 3000}));
  EXPECT_EQ(p.offset, 0u);
  EXPECT_EQ(p.first, 3000u);
  EXPECT_EQ(p.second, 0u);
  EXPECT_FALSE(s.all_done());
  EXPECT_EQ(s.next_piece(kRing), kRing - 3000);
  s.on_done(3000);
  EXPECT_FALSE(s.all_done()) << "the message behind it";
  s.on_done(0);
  EXPECT_TRUE(s.all_done());
  EXPECT_EQ(s.next_piece(kRing), kRing);
}

// proves: DI-14
TEST(RsocketSendSide, TheRingWrapsAround) {
  SendSide s = begun();
  s.take(6000, false);
  s.on_done(6000);
  s.on_done(0);
  const auto p = s.take(4000, false);
  EXPECT_EQ(p.offset, 6000u);
  EXPECT_EQ(p.first, kRing - 6000);
  EXPECT_EQ(p.second, 4000 - (kRing - 6000));
  EXPECT_EQ(p.to.address, 0x1000u + 6000);
  EXPECT_EQ(s.take(10, false).offset, p.second);
}

TEST(RsocketSendSide, InlineDataUsesNothingOfTheRing) {
  SendSide s = begun();
  EXPECT_EQ(s.take(64, true).first, 0u);
  EXPECT_EQ(s.next_piece(kRing), kRing);
  EXPECT_EQ(s.take(64, false).to.address, 0x1000u + 64);
}

// proves: DI-14
TEST(RsocketSendSide, SendingStopsWithoutCreditAndContinuesWithMore) {
  SendSide s = begun(2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(s.can_send());
    s.take(1, true);
  }
  EXPECT_FALSE(s.can_send());
  s.on_grant(3);
  EXPECT_TRUE(s.can_send());
  s.take_mapping();
  EXPECT_FALSE(s.can_send()) << "a mapping takes a credit as well";
}

TEST(RsocketSendSide, CreditsAreCountedInSixteenBits) {
  SendSide s = begun(1);
  for (std::uint32_t i = 1; i < 70'000; ++i) {
    ASSERT_TRUE(s.can_send()) << i;
    s.take(1, true);
    s.on_done(0);
    s.on_done(0);
    ASSERT_FALSE(s.can_send()) << i;
    s.on_grant(static_cast<std::uint16_t>(i + 1));
  }
}

// proves: DI-14
TEST(RsocketSendSide, SendingStopsWithoutSlotsOrRoomInTheRing) {
  SendSide s = begun();
  for (std::uint32_t i = 0; i < kSlots / kPostsOfData; ++i) {
    ASSERT_TRUE(s.can_send());
    s.take(1, true);
  }
  EXPECT_FALSE(s.can_send()) << "no places";
  s = begun();
  s.take(kRing - kLowWater + 1, false);
  EXPECT_FALSE(s.can_send()) << "less than a low water mark in the ring";
  s.on_done(kRing - kLowWater + 1);
  EXPECT_TRUE(s.can_send());
}

// proves: DI-14
TEST(RsocketSendSide, ATargetIsUsedUpBeforeTheNext) {
  SendSide s = begun(100, {0x1000, 7, 3000});
  EXPECT_TRUE(s.on_target({0x9000, 8, 5000}));
  EXPECT_FALSE(s.on_target({0xa000, 9, 1})) << "there are two";
  EXPECT_EQ(s.next_piece(4000), 3000u);
  s.take(3000, false);
  EXPECT_EQ(s.next_piece(4000), 4000u);
  EXPECT_EQ(s.take(4000, false).to, (Entry{0x9000, 8, 4000}));
  EXPECT_TRUE(s.on_target({0xa000, 9, 10}));
  s.on_done(3000);
  s.on_done(4000);
  s.take(1000, false);
  EXPECT_EQ(s.take(10, true).to, (Entry{0xa000, 9, 10}));
  EXPECT_FALSE(s.can_send()) << "no target is left";
}

TEST(RsocketSendSide, NoPieceExceedsTheMaximum) {
  SendSide s;
  s.open(1 << 20, kSlots);
  s.begin(1, {0, 0, 1 << 20});
  EXPECT_EQ(s.next_piece(1 << 20), kMaxPiece);
  EXPECT_EQ(s.next_direct(1 << 20, 1 << 20), kMaxPiece);
  EXPECT_EQ(s.next_direct(1000, 300), 300u) << "the mapping ends there";
}

TEST(RsocketSendSide, AWriteToAMappingUsesASlotAndNoCredit) {
  SendSide s = begun(1);
  s.take_direct(100, false);
  EXPECT_TRUE(s.can_send());
  s.on_done(100);
  EXPECT_TRUE(s.all_done());
}

}  // namespace
}  // namespace urnic::rsockets
