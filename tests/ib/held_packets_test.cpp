// The store for packets past a gap: order, bounds, and memory that is returned.
#include "ib/held_packets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/rng.h"

namespace urnic::ib {
namespace {

using Kept = HeldPackets::Kept;
using Bytes = std::vector<std::uint8_t>;

struct HeldPacketsTest : testing::Test {
  Kept keep(std::uint32_t psn, std::size_t bytes = 100) {
    Bytes payload(bytes, static_cast<std::uint8_t>(psn));
    ParsedPacket p;
    p.header.bth.opcode = Opcode(ServiceType::Rc, Operation::WriteMiddle);
    p.header.bth.psn = Psn(psn);
    p.payload = payload;
    return held.keep(p);
  }
  std::vector<std::uint32_t> drain() {
    std::vector<std::uint32_t> psns;
    while (!held.empty()) {
      const ParsedPacket& p = held.first();
      psns.push_back(p.header.bth.psn.value());
      for (const std::uint8_t byte : p.payload) {
        EXPECT_EQ(byte, static_cast<std::uint8_t>(psns.back()));
      }
      held.remove_first();
    }
    return psns;
  }

  HeldPool pool{1 << 20};
  HeldPackets held{&pool, 100, 1024};
};

TEST_F(HeldPacketsTest, AreReturnedInTheOrderOfPsnsForAnyOrderOfArrival) {
  // Across the wrap of PSNs.
  std::vector<std::uint32_t> psns(100);
  std::iota(psns.begin(), psns.end(), 0xffffff - 50u);
  const auto sorted = psns;
  Rng rng(1);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = psns.size(); i > 1; --i) std::swap(psns[i - 1], psns[rng.below(i)]);
    for (const std::uint32_t psn : psns) ASSERT_EQ(keep(psn, psn % 1025), Kept::Yes);
    EXPECT_EQ(held.end(), Psn(0xffffff - 50u + 100));
    std::vector<std::uint32_t> expected;
    for (const std::uint32_t psn : sorted) expected.push_back(psn & kMask24);
    ASSERT_EQ(drain(), expected);
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

// Reverse order with the most packets allowed, then each between two others.
TEST_F(HeldPacketsTest, AreReturnedInOrderAlsoWhenTheyArriveInReverse) {
  HeldPool large;
  HeldPackets most(&large, 4096, 256);
  ParsedPacket p;
  const auto give = [&](std::uint32_t from) {
    for (std::uint32_t i = 0; i < 2048; ++i) {
      p.header.bth.psn = Psn(from - 2 * i);
      ASSERT_EQ(most.keep(p), Kept::Yes);
      ASSERT_EQ(most.keep(p), Kept::Already);
    }
  };
  give(3000);  // downwards across the wrap
  give(3001);
  EXPECT_EQ(most.keep({}), Kept::Already) << "0 is among them";
  for (std::uint32_t i = 0; i < 4096; ++i) {
    ASSERT_EQ(most.first_psn(), Psn(3000 - 4094 + i));
    most.remove_first();
  }
}

TEST_F(HeldPacketsTest, StayInOrderWhileSomeAreRemovedAndOthersAreAdded) {
  std::uint32_t next = 5, behind = 5;
  for (int round = 0; round < 1000; ++round) {
    while (held.size() < 60) ASSERT_EQ(keep(behind++), Kept::Yes);
    for (int i = 0; i < 37; ++i) {
      ASSERT_EQ(held.first_psn(), Psn(next++));
      held.remove_first();
    }
  }
}

TEST_F(HeldPacketsTest, TheFirstCopyIsKept) {
  EXPECT_EQ(keep(7, 10), Kept::Yes);
  EXPECT_EQ(keep(7, 20), Kept::Already);
  EXPECT_EQ(keep(9, 20), Kept::Yes);
  EXPECT_EQ(keep(7, 20), Kept::Already);
  EXPECT_EQ(held.size(), 2u);
  EXPECT_EQ(held.first().payload.size(), 10u);
}

TEST_F(HeldPacketsTest, AreAtMostTheLimit) {
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_EQ(keep(2 * i), Kept::Yes);
  EXPECT_EQ(keep(7), Kept::NoRoom);
  EXPECT_EQ(keep(8), Kept::Already);
  held.remove_first();
  EXPECT_EQ(keep(7), Kept::Yes);
}

TEST_F(HeldPacketsTest, TheEndOfAReadIsAfterItsLastResponse) {
  ParsedPacket p;
  p.header.bth.opcode = Opcode(ServiceType::Rc, Operation::ReadRequest);
  p.header.bth.psn = Psn(10);
  p.header.reth.length = 2049;
  held.keep(p);
  EXPECT_EQ(held.end(), Psn(13));
}

TEST_F(HeldPacketsTest, ReturnAllMemoryWhenNoneIsLeft) {
  EXPECT_EQ(pool.in_use(), 0u);
  keep(1);
  keep(2, 0);
  EXPECT_GT(pool.in_use(), 0u);
  drain();
  EXPECT_EQ(pool.in_use(), 0u);
  keep(3);
  held.clear();
  EXPECT_EQ(pool.in_use(), 0u);
  {
    HeldPackets gone(&pool, 10, 256);
    ParsedPacket p;
    gone.keep(p);
    EXPECT_GT(pool.in_use(), 0u);
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST_F(HeldPacketsTest, ThePoolLimitsAllQueuePairsTogether) {
  HeldPool small(5 * 4096);  // the book of ten takes one or two blocks
  HeldPackets mine(&small, 10, 4096);
  ParsedPacket p;
  const Bytes payload(4096, 1);
  p.payload = payload;
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < 10; ++i) {
    p.header.bth.psn = Psn(i);
    kept += mine.keep(p) == Kept::Yes;
  }
  EXPECT_GE(kept, 3u);
  EXPECT_LE(kept, 4u);
  EXPECT_LE(small.in_use(), 5u * 4096);
  // A packet without payload fits; a packet of another queue pair does not.
  p.payload = {};
  p.header.bth.psn = Psn(20);
  EXPECT_EQ(mine.keep(p), Kept::Yes);
  HeldPackets other(&small, 10, 4096);
  p.payload = payload;
  EXPECT_EQ(other.keep(p), Kept::NoRoom);
  EXPECT_TRUE(other.empty());
  mine.clear();
  EXPECT_EQ(small.in_use(), 0u) << "what was not kept has taken nothing";
  EXPECT_EQ(other.keep(p), Kept::Yes);
}

TEST(HeldWithoutAPool, NothingIsKept) {
  HeldPackets held(nullptr, 10, 256);
  EXPECT_EQ(held.keep({}), Kept::NoRoom);
  EXPECT_TRUE(held.empty());
}

}  // namespace
}  // namespace urnic::ib
