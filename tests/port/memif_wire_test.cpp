#include "port/memif_wire.h"

#include <gtest/gtest.h>

namespace urnic::port::memif {
namespace {

TEST(MemifWire, MessagesHaveThePublishedLayout) {
  Message m;
  m.set_type(MessageType::kAddRing);
  m.set_u16(add_ring::kFlags, add_ring::kFlagS2m);
  m.set_u16(add_ring::kIndex, 0x0102);
  m.set_u16(add_ring::kRegion, 0x0304);
  m.set_u32(add_ring::kOffset, 0x05060708);
  m.set_u8(add_ring::kLog2, 9);
  const std::uint8_t want[] = {5, 0, 1, 0, 2, 1, 4, 3, 8, 7, 6, 5, 9, 0, 0};
  EXPECT_EQ(std::memcmp(m.bytes.data(), want, sizeof want), 0);

  m = {};
  m.set_type(MessageType::kAddRegion);
  m.set_u16(add_region::kIndex, 1);
  m.set_u64(add_region::kSize, 0x0807060504030201);
  const std::uint8_t region[] = {4, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0};
  EXPECT_EQ(std::memcmp(m.bytes.data(), region, sizeof region), 0);
  EXPECT_EQ(m.u64(add_region::kSize), 0x0807060504030201u);
}

TEST(MemifWire, TextFieldsNeverOverflow) {
  Message m;
  m.set_text(disconnect::kReason, kReasonSize, std::string(500, 'x'));
  EXPECT_EQ(m.text(disconnect::kReason, kReasonSize).size(), kReasonSize - 1);
  for (std::size_t i = disconnect::kReason; i < kMessageSize; ++i) m.bytes[i] = 'y';
  EXPECT_EQ(m.text(disconnect::kReason, kReasonSize).size(), kReasonSize);
}

TEST(MemifWire, DescriptorsHaveThePublishedLayout) {
  alignas(64) std::uint8_t ring[ring::bytes(1)] = {};
  Descriptor{0x0102, 0x0304, 0x05060708, 0x090a0b0c}.store(ring, 1);
  const std::uint8_t want[16] = {2, 1, 4, 3, 8, 7, 6, 5, 0xc, 0xb, 0xa, 9, 0, 0, 0, 0};
  EXPECT_EQ(std::memcmp(ring + 128 + 16, want, 16), 0);
  const Descriptor d = Descriptor::load(ring, 1);
  EXPECT_EQ(d.flags, 0x0102);
  EXPECT_EQ(d.region, 0x0304);
  EXPECT_EQ(d.length, 0x05060708u);
  EXPECT_EQ(d.offset, 0x090a0b0cu);
  ring::u16(ring, ring::kTail).store(0x1122);
  EXPECT_EQ(ring[64], 0x22);
}

}  // namespace
}  // namespace urnic::port::memif
