#include "ib/sack.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace urnic::ib {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes emit(PacketHeader h, ByteView payload) {
  h.bth.dest_qp = 0x123456;
  Bytes bytes(packet_bytes(h.bth.opcode, payload.size()));
  emit_packet(h, payload, bytes.data());
  return bytes;
}
PacketHeader sack_header(std::uint32_t psn) {
  PacketHeader h;
  h.bth.opcode = kSackOpcode;
  h.bth.psn = Psn(psn);
  h.aeth = {Syndrome::ack(3), Msn(0x010203)};
  return h;
}

// proves: S-6
TEST(Sack, HasItsDocumentedWireFormat) {
  SackBytes own;
  SackWriter writer(&own, 0xa1b2c3d4);
  EXPECT_TRUE(writer.set(1));
  EXPECT_TRUE(writer.set(8));
  EXPECT_TRUE(writer.set(33));
  EXPECT_FALSE(writer.set(kMostSackBits));
  const Bytes bytes = emit(sack_header(0xfffffe), writer.payload());
  const Bytes golden = {0xc0, 0x40, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x00, 0xff, 0xff, 0xfe,  //
                        0x03, 0x01, 0x02, 0x03,                                                  //
                        0xa1, 0xb2, 0xc3, 0xd4, 0x40, 0x80, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00,  //
                        0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(bytes, golden);
  const auto packet = parse_packet(bytes);
  ASSERT_TRUE(packet.ok());
  const auto sack = parse_sack(*packet);
  ASSERT_TRUE(sack);
  EXPECT_EQ(sack->expected, Psn(0xffffff));
  EXPECT_EQ(sack->serial, 0xa1b2c3d4u);
  ASSERT_EQ(sack->size(), 64u);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(sack->has(i), i == 1 || i == 8 || i == 33) << i;
}

// proves: S-6
TEST(Sack, OfAnInvalidLengthIsRejected) {
  const Bytes payload(kMostSackBytes + 8);
  for (std::size_t n = 0; n <= payload.size(); ++n) {
    ParsedPacket p;
    p.header = sack_header(1);
    p.payload = ByteView(payload).first(n);
    EXPECT_EQ(parse_sack(p).has_value(), n >= 8 && n <= kMostSackBytes && n % 4 == 0) << n;
  }
}

// proves: S-7
TEST(HelloPacket, HasItsDocumentedWireFormat) {
  PacketHeader h;
  h.bth.opcode = kHelloOpcode;
  h.bth.psn = Psn(0x0a0b0c);
  const Bytes bytes = emit(h, write_hello({true, true}));
  const Bytes golden = {0xc1, 0x40, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x00, 0x0a,
                        0x0b, 0x0c, 0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(bytes, golden);
  auto packet = parse_packet(bytes);
  ASSERT_TRUE(packet.ok());
  const auto hello = parse_hello(*packet);
  ASSERT_TRUE(hello);
  EXPECT_TRUE(hello->selective && hello->answer);
  EXPECT_FALSE(hello->parts) << "as one says that has not heard of them";
  EXPECT_EQ(write_hello({true, false, true}),
            (std::array<std::uint8_t, kHelloBytes>{1, 0xa0, 0, 0}));
  EXPECT_FALSE(parse_hello({packet->header, packet->payload.first(3)}));
  Bytes other = bytes;
  other[13] = 0x20;
  EXPECT_TRUE(parse_hello(*parse_packet(other))->parts);
  other[12] = 2;  // version
  EXPECT_FALSE(parse_hello(*parse_packet(other)));
}

}  // namespace
}  // namespace urnic::ib
