// The bytes of the protocol, compared with those of rdma-core's librdmacm on a little-endian
// machine.
#include "rsockets/wire.h"

#include <gtest/gtest.h>

#include <vector>

namespace urnic::rsockets {
namespace {

// proves: DI-13
TEST(RsocketWire, PrivateDataIsVersionFlagsCreditsIomapTargetsBuffer) {
  ConnectionData d;
  d.order = Order::little;
  d.credits = 384;
  d.mappings = 5;
  d.targets = {0x1122334455667788, 0xa1a2a3a4, 2};
  d.buffer = {0x0102030405060708, 0xb1b2b3b4, 65536};
  const std::array<std::uint8_t, kConnectionBytes> wanted{
      1,    2,    0x01, 0x80, 0,    0,    0,    5,                                         //
      0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xa1, 0xa2, 0xa3, 0xa4, 0, 0, 0, 2,  //
      0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0xb1, 0xb2, 0xb3, 0xb4, 0, 1, 0, 0};
  EXPECT_EQ(encode(d), wanted);
  EXPECT_EQ(decode(wanted), d);
}

// proves: DI-13
TEST(RsocketWire, UnusablePrivateDataIsNotDecoded) {
  ConnectionData d;
  d.credits = 16;
  d.targets.length = 2;
  d.buffer.length = 4096;
  const auto good = encode(d);
  ASSERT_TRUE(decode(good));
  EXPECT_FALSE(decode(std::span(good).first(kConnectionBytes - 1)));
  auto other = good;
  other[0] = 2;
  EXPECT_FALSE(decode(other)) << "another version";
  for (const std::size_t at : {2u, 8u + 12u, 24u + 12u}) {
    auto zero = good;
    for (std::size_t i = at; i < at + (at == 2 ? 2 : 4); ++i) zero[i] = 0;
    EXPECT_FALSE(decode(zero)) << "zero at " << at;
  }
  auto without = good;
  without[1] = 0;
  without[7] = 9;
  EXPECT_EQ(decode(without)->mappings, 0u) << "it has no iomap";
  auto longer = std::vector(good.begin(), good.end());
  longer.push_back(7);
  EXPECT_EQ(decode(longer), d) << "MPA may have padded it";
}

TEST(RsocketWire, MessagesHaveTheirKindInTheUpperThreeBits) {
  EXPECT_EQ(message(Op::data, 65536), 0x0001'0000u);
  EXPECT_EQ(message(Op::grant, 384), 0x8000'0180u);
  EXPECT_EQ(message(Op::iomap, 3), 0xc000'0003u);
  EXPECT_EQ(message(Control::disconnect), 0xe000'0000u);
  EXPECT_EQ(message(Control::shutdown), 0xe000'0002u);
  EXPECT_EQ(op_of(0xe000'0002u), Op::control);
  EXPECT_EQ(value_of(0xffff'ffffu), 0x1fff'ffffu);
}

// proves: DI-13
TEST(RsocketWire, EntriesAndMessagesAreInTheByteOrderOfTheReader) {
  std::uint8_t bytes[kMappingBytes];
  put_message(0x80000180, Order::big, bytes);
  EXPECT_EQ(bytes[0], 0x80);
  EXPECT_EQ(get_message(bytes, Order::big), 0x80000180u);
  put_message(0x80000180, Order::little, bytes);
  EXPECT_EQ(bytes[3], 0x80);
  const Mapping m{0x1000, {0x0102030405060708, 0xb1b2b3b4, 4096}};
  for (const Order order : {Order::little, Order::big}) {
    put(m, order, bytes);
    EXPECT_EQ(bytes[order == Order::big ? 8 : 15], 1) << "the address is behind the offset";
    EXPECT_EQ(get_mapping(bytes, order), m);
    EXPECT_EQ(get_entry(bytes + 8, order), m.memory);
  }
}

// proves: DI-13
TEST(RsocketWire, NumbersOfMappingsAreExactUpTo128) {
  for (const std::uint32_t n : {0u, 1u, 127u, 128u}) EXPECT_EQ(from_scale(to_scale(n)), n);
  EXPECT_EQ(from_scale(to_scale(1000)), 768u);
  EXPECT_EQ(from_scale(to_scale(32512)), 32512u);
  EXPECT_EQ(from_scale(to_scale(1'000'000)), 32512u) << "the most there can be";
}

}  // namespace
}  // namespace urnic::rsockets
