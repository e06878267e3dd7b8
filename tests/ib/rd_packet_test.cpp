// Packets of RD, byte for byte, and its opcodes.
#include <gtest/gtest.h>

#include "ib/packet.h"
#include "support/golden.h"

namespace urnic::ib {
namespace {

using urnic::test::Bytes;
using urnic::test::to_hex;

PacketHeader header_of(Operation o) {
  PacketHeader h;
  h.bth.opcode = Opcode(ServiceType::Rd, o);
  h.bth.dest_qp = 0x123456;
  h.bth.psn = Psn(0xabcdef);
  h.ee_context = 0x0a0b0c;
  h.deth = {0x11223344, 0x55aa66};
  return h;
}

Bytes emit(const PacketHeader& h, const Bytes& payload = {}) {
  Bytes out(packet_bytes(h.bth.opcode, payload.size()), 0);
  EXPECT_EQ(emit_packet(h, payload, out.data()), out.size());
  return out;
}

// proves: IB-170
TEST(RdPacket, TheRdethFollowsTheBthAndTheDethFollowsIt) {
  EXPECT_EQ(to_hex(emit(header_of(Operation::SendOnly), {1, 2, 3})),
            "4450ffff0012345600abcdef"  // BTH, PadCnt 1
            "000a0b0c"                  // RDETH
            "112233440055aa66"          // DETH
            "01020300"
            "00000000");
}

// proves: IB-170
TEST(RdPacket, OtherHeadersFollowThem) {
  PacketHeader h = header_of(Operation::WriteOnlyImm);
  h.reth = {0x0102030405060708, 0x11121314, 0x21222324};
  h.immediate = 0x31323334;
  EXPECT_EQ(to_hex(ByteView(emit(h)).subspan(12, 32)),
            "000a0b0c112233440055aa660102030405060708111213142122232431323334");
  h = header_of(Operation::CmpSwap);
  h.atomic = {0x0102030405060708, 0x11121314, 0x2122232425262728, 0x3132333435363738};
  EXPECT_EQ(to_hex(ByteView(emit(h)).subspan(12, 40)),
            "000a0b0c112233440055aa66"
            "01020304050607081112131421222324252627283132333435363738");
}

// proves: IB-170
TEST(RdPacket, ResponsesHaveOnlyTheRdeth) {
  PacketHeader h = header_of(Operation::Acknowledge);
  h.aeth = {Syndrome::nak(NakCode::InvalidRdRequest), Msn(0x010203)};
  EXPECT_EQ(to_hex(emit(h)), "5140ffff0012345600abcdef000a0b0c6401020300000000");
  EXPECT_EQ(
      to_hex(ByteView(emit(header_of(Operation::ReadResponseMiddle), Bytes(4, 9))).subspan(12, 8)),
      "000a0b0c09090909");
  h = header_of(Operation::AtomicAcknowledge);
  h.original = 0x1112131415161718;
  EXPECT_EQ(to_hex(ByteView(emit(h)).subspan(12, 16)), "000a0b0c1f0000001112131415161718");
}

// proves: IB-170
TEST(RdPacket, AResyncHasNoPayload) {
  PacketHeader h = header_of(Operation::Resync);
  h.bth.ack_request = true;
  EXPECT_EQ(to_hex(emit(h)), "5540ffff0012345680abcdef000a0b0c112233440055aa6600000000");
  EXPECT_EQ(h.row().family, Family::Resync);
  EXPECT_TRUE(h.row().begins() && h.row().ends());
  EXPECT_FALSE(h.row().response() || h.row().completes_receive());
}

TEST(RdPacket, OperationsAreThoseOfRcWithoutInvalidationAndWithResync) {
  for (unsigned o = 0; o < 32; ++o) {
    const auto operation = static_cast<Operation>(o);
    const OpcodeRow& rd = row(Opcode(ServiceType::Rd, operation));
    const OpcodeRow& rc = row(Opcode(ServiceType::Rc, operation));
    if (operation == Operation::Resync) continue;
    const bool has = rc.known() && !rc.has(kIeth);
    EXPECT_EQ(rd.known(), has) << o;
    if (!has) continue;
    EXPECT_EQ(rd.family, rc.family);
    EXPECT_EQ(rd.place, rc.place);
    EXPECT_EQ(rd.payload, rc.payload);
    EXPECT_EQ(rd.headers, rc.headers | kRdeth | (rc.response() ? 0 : kDeth)) << o;
    EXPECT_EQ(rd.header_bytes, rc.header_bytes + (rc.response() ? 4 : 12)) << o;
  }
}

// proves: IB-170
TEST(RdPacket, APacketTooShortForItsHeadersIsMalformed) {
  const Bytes whole = emit(header_of(Operation::SendOnly));
  const auto p = parse_packet(ByteView(whole).first(whole.size() - 4));
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.error(), Malformed::Headers);
}

}  // namespace
}  // namespace urnic::ib
