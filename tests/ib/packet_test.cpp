#include "ib/packet.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/golden.h"

namespace urnic::ib {
namespace {

using urnic::test::Bytes;
using urnic::test::from_hex;
using urnic::test::to_hex;

PacketHeader header_of(ServiceType s, Operation o) {
  PacketHeader h;
  h.bth.opcode = Opcode(s, o);
  h.bth.dest_qp = 0x123456;
  h.bth.psn = Psn(0xabcdef);
  return h;
}

Bytes emit(const PacketHeader& h, const Bytes& payload = {}) {
  Bytes out(packet_bytes(h.bth.opcode, payload.size()), 0);
  EXPECT_EQ(emit_packet(h, payload, out.data()), out.size());
  return out;
}

TEST(Packet, EveryFieldOfTheBthHasItsOffset) {
  PacketHeader h = header_of(ServiceType::Rc, Operation::SendOnly);
  h.bth.solicited = true;
  h.bth.migrated = false;
  h.bth.pkey = 0x8a5b;
  h.bth.fecn = true;
  h.bth.ack_request = true;
  EXPECT_EQ(to_hex(emit(h, {1, 2, 3})),
            "04908a5b8012345680abcdef01020300"
            "00000000");
  h.bth.solicited = h.bth.fecn = h.bth.ack_request = false;
  h.bth.migrated = h.bth.becn = true;
  EXPECT_EQ(to_hex(emit(h)),
            "04408a5b4012345600abcdef"
            "00000000");
}

TEST(Packet, EveryExtensionHeaderHasItsOffset) {
  PacketHeader h = header_of(ServiceType::Rc, Operation::WriteOnlyImm);
  h.reth = {0x0102030405060708, 0x11121314, 0x21222324};
  h.immediate = 0x31323334;
  EXPECT_EQ(to_hex(ByteView(emit(h)).subspan(12, 20)), "0102030405060708111213142122232431323334");
  h = header_of(ServiceType::Rc, Operation::CmpSwap);
  h.atomic = {0x0102030405060708, 0x11121314, 0x2122232425262728, 0x3132333435363738};
  EXPECT_EQ(to_hex(ByteView(emit(h)).subspan(12, 28)),
            "01020304050607081112131421222324252627283132333435363738");
  h = header_of(ServiceType::Rc, Operation::AtomicAcknowledge);
  h.aeth = {Syndrome::ack(5), Msn(0x010203)};
  h.original = 0x1112131415161718;
  EXPECT_EQ(to_hex(ByteView(emit(h)).subspan(12, 12)), "050102031112131415161718");
  h = header_of(ServiceType::Rc, Operation::SendOnlyInv);
  h.inv_rkey = 0x01020304;
  EXPECT_EQ(to_hex(ByteView(emit(h)).subspan(12, 4)), "01020304");
  h = header_of(ServiceType::Ud, Operation::SendOnlyImm);
  h.deth = {0x80010000, 0x010203};
  h.immediate = 7;
  EXPECT_EQ(to_hex(ByteView(emit(h)).subspan(12, 12)), "800100000001020300000007");
}

// proves: IB-161
TEST(Packet, XrcRequestsHaveAnXrcethAfterTheBthAndResponsesDoNot) {
  PacketHeader h = header_of(ServiceType::Xrc, Operation::SendOnly);
  h.srq = 0x0a0b0c;
  EXPECT_EQ(to_hex(emit(h, {1, 2, 3, 4})),
            "a440ffff0012345600abcdef"
            "000a0b0c"
            "01020304"
            "00000000");
  h = header_of(ServiceType::Xrc, Operation::WriteOnlyImm);
  h.srq = 0x010203;
  h.reth = {0x0102030405060708, 0x11121314, 0x21222324};
  h.immediate = 0x31323334;
  EXPECT_EQ(to_hex(ByteView(emit(h)).subspan(12, 24)),
            "00010203"
            "0102030405060708111213142122232431323334");
  h = header_of(ServiceType::Xrc, Operation::CmpSwap);
  h.srq = 0xffffff;
  h.atomic = {0x0102030405060708, 0x11121314, 0x2122232425262728, 0x3132333435363738};
  EXPECT_EQ(to_hex(ByteView(emit(h)).subspan(12, 32)),
            "00ffffff"
            "01020304050607081112131421222324252627283132333435363738");
  h = header_of(ServiceType::Xrc, Operation::Acknowledge);
  h.srq = 0x0a0b0c;
  h.aeth = {Syndrome::nak(NakCode::InvalidRdRequest), Msn(0x010203)};
  EXPECT_EQ(to_hex(emit(h)),
            "b140ffff0012345600abcdef"
            "64010203"
            "00000000");
}

// proves: IB-161
TEST(Packet, APacketTooShortForItsXrcethIsMalformed) {
  const Bytes whole = from_hex("a440ffff0012345600abcdef000a0b0c00000000");
  const auto packet = parse_packet(whole);
  ASSERT_TRUE(packet.ok());
  EXPECT_EQ(packet->header.srq, 0x0a0b0cu);
  EXPECT_TRUE(packet->payload.empty());
  const auto cut = parse_packet(ByteView(whole).first(16));
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error(), Malformed::Headers);
  // Its first byte is ignored.
  const auto reserved = parse_packet(from_hex("a440ffff0012345600abcdefee0a0b0c00000000"));
  ASSERT_TRUE(reserved.ok());
  EXPECT_EQ(reserved->header.srq, 0x0a0b0cu);
}

// Parsing returns what was written, for every opcode and any values.
TEST(Packet, AParsedPacketEqualsTheOneWritten) {
  Rng rng(3);
  for (int byte = 0; byte < 256; ++byte) {
    const Opcode opcode(static_cast<std::uint8_t>(byte));
    if (!row(opcode).known()) continue;
    for (int i = 0; i < 20; ++i) {
      Bytes first(header_of(opcode.service(), opcode.operation()).row().header_bytes + 16 +
                      4 * rng.below(9),
                  0);
      for (auto& b : first) b = static_cast<std::uint8_t>(rng.next());
      first[0] = opcode.byte;
      const auto read = parse_packet(first);
      if (!read.ok()) continue;  // an invalid pad
      const Bytes again = emit(read->header, Bytes(read->payload.begin(), read->payload.end()));
      const auto reread = parse_packet(again);
      ASSERT_TRUE(reread.ok());
      ASSERT_EQ(to_hex(reread->payload), to_hex(read->payload));
      const PacketHeader &a = read->header, &b = reread->header;
      EXPECT_EQ(a.bth.pad, b.bth.pad);
      EXPECT_EQ(a.bth.psn, b.bth.psn);
      EXPECT_EQ(a.bth.dest_qp, b.bth.dest_qp);
      EXPECT_EQ(a.bth.version, b.bth.version);
      EXPECT_EQ(a.reth.address, b.reth.address);
      EXPECT_EQ(a.reth.length, b.reth.length);
      EXPECT_EQ(a.atomic.compare, b.atomic.compare);
      EXPECT_EQ(a.immediate, b.immediate);
      EXPECT_EQ(a.inv_rkey, b.inv_rkey);
      EXPECT_EQ(a.original, b.original);
      EXPECT_EQ(a.aeth.msn, b.aeth.msn);
      EXPECT_EQ(a.deth.qkey, b.deth.qkey);
      EXPECT_EQ(a.deth.source_qp, b.deth.source_qp);
    }
  }
}

TEST(Packet, PayloadIsPaddedWithZeros) {
  for (std::size_t n = 0; n < 9; ++n) {
    const PacketHeader h = header_of(ServiceType::Rc, Operation::SendOnly);
    Bytes out(packet_bytes(h.bth.opcode, n), 0xee);
    const Bytes payload(n, 0x55);
    emit_packet(h, payload, out.data());
    EXPECT_EQ(out.size() % 4, 0u);
    for (std::size_t i = kBthBytes + n; i < out.size() - kIcrcBytes; ++i) EXPECT_EQ(out[i], 0);
    const auto p = parse_packet(out);
    ASSERT_TRUE(p.ok());
    EXPECT_EQ(p->header.bth.pad, (4 - n % 4) % 4);
    EXPECT_EQ(to_hex(p->payload), to_hex(payload));
  }
}

TEST(Packet, PayloadMayAlreadyBeAtItsDestination) {
  const PacketHeader h = header_of(ServiceType::Rc, Operation::WriteOnly);
  Bytes out(packet_bytes(h.bth.opcode, 5), 0xee);
  const std::uint32_t at = header_bytes(h.bth.opcode);
  for (std::uint8_t i = 0; i < 5; ++i) out[at + i] = i;
  emit_packet(h, {out.data() + at, 5}, out.data());
  EXPECT_EQ(to_hex(ByteView(out).subspan(at, 8)), "0001020304000000");
}

TEST(Packet, InvalidLengthsAreRefused) {
  const Bytes write = emit(header_of(ServiceType::Rc, Operation::WriteOnly), Bytes(8, 1));
  const auto error = [](ByteView b) {
    const auto p = parse_packet(b);
    EXPECT_FALSE(p.ok());
    return p.ok() ? Malformed{} : p.error();
  };
  for (std::size_t n = 0; n < 16; ++n) {
    EXPECT_EQ(error(ByteView(write).first(n)), Malformed::Short);
  }
  for (std::size_t n = 16; n < write.size(); ++n) {
    if (n % 4 != 0) {
      EXPECT_EQ(error(ByteView(write).first(n)), Malformed::Uneven);
    } else if (n < kBthBytes + 16 + kIcrcBytes) {
      EXPECT_EQ(error(ByteView(write).first(n)), Malformed::Headers);
    }
  }
  Bytes pad = emit(header_of(ServiceType::Rc, Operation::SendOnly));
  pad[1] |= 0x10;
  EXPECT_EQ(error(pad), Malformed::Pad);
}

TEST(Packet, AReservedOpcodeHasPayloadOnly) {
  Bytes b = emit(header_of(ServiceType::Rc, Operation::SendOnly), Bytes(40, 9));
  b[0] = 0x1f;
  const auto p = parse_packet(b);
  ASSERT_TRUE(p.ok());
  EXPECT_FALSE(p->header.row().known());
  EXPECT_EQ(p->payload.size(), 40u);
}

// proves: IB-3
TEST(Syndrome, KindAndValueShareTheLowerSevenBits) {
  EXPECT_EQ(Syndrome::ack(31).byte, 0x1f);
  EXPECT_EQ(Syndrome::ack(4).byte, 0x04);
  EXPECT_EQ(Syndrome::rnr_nak(12).byte, 0x2c);
  EXPECT_EQ(Syndrome::nak(NakCode::SequenceError).byte, 0x60);
  EXPECT_EQ(Syndrome::nak(NakCode::OperationInProgress).byte, 0x65);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const Syndrome s{static_cast<std::uint8_t>(byte)};
    const bool reserved = byte >= 0x80 || (byte >= 0x40 && byte < 0x60) || byte >= 0x66;
    EXPECT_EQ(s.reserved(), reserved) << byte;
    if (reserved) continue;
    const AckKind kind = byte < 0x20 ? AckKind::Ack : byte < 0x40 ? AckKind::RnrNak : AckKind::Nak;
    EXPECT_EQ(s.kind(), kind) << byte;
    EXPECT_EQ(s.value(), byte % 0x20) << byte;
  }
}

// proves: IB-3
TEST(Syndrome, BitSevenIsSentAsZero) {
  PacketHeader h = header_of(ServiceType::Rc, Operation::Acknowledge);
  for (unsigned byte = 0; byte < 256; ++byte) {
    h.aeth = {Syndrome{static_cast<std::uint8_t>(byte)}, Msn(1)};
    EXPECT_EQ(emit(h)[12], byte % 0x80);
  }
}

}  // namespace
}  // namespace urnic::ib
