#include "ib/opcode_table.h"

#include <gtest/gtest.h>

#include <set>

#include "ib/packet.h"

namespace urnic::ib {
namespace {

const OpcodeRow& rc(Operation o) {
  return row(Opcode(ServiceType::Rc, o));
}

TEST(OpcodeTable, EachServiceHasItsOperationsAndNoOthers) {
  const std::set<int> uc = {0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b};
  const std::set<int> ud = {0x64, 0x65};
  for (int byte = 0; byte < 256; ++byte) {
    const bool rd = byte >= 0x40 && byte <= 0x55;
    const bool known = byte <= 0x14 || byte == 0x16 || byte == 0x17 || uc.contains(byte) || rd ||
                       ud.contains(byte) || byte == 0x81 || byte == 0xc0 || byte == 0xc1 ||
                       (byte >= 0xa0 && byte <= 0xb4) || byte == 0xb6 || byte == 0xb7;
    EXPECT_EQ(row(Opcode(static_cast<std::uint8_t>(byte))).known(), known) << byte;
  }
}

TEST(OpcodeTable, OpcodesHaveTheirValuesOnTheWire) {
  EXPECT_EQ(Opcode(ServiceType::Rc, Operation::SendOnly).byte, 0x04);
  EXPECT_EQ(Opcode(ServiceType::Uc, Operation::WriteOnlyImm).byte, 0x2b);
  EXPECT_EQ(Opcode(ServiceType::Ud, Operation::SendOnlyImm).byte, 0x65);
  EXPECT_EQ(Opcode(0x65).service(), ServiceType::Ud);
  EXPECT_EQ(Opcode(0x65).operation(), Operation::SendOnlyImm);
}

// The split of section 0.7: 0x0d..0x12 are for the requester, with RD as well, and so are CNPs and
// our SACK.
TEST(OpcodeTable, ResponsesAreReadResponsesAndAcknowledges) {
  for (int byte = 0; byte < 256; ++byte) {
    const int service = byte >> 5;
    const bool of_service =
        (service == 0 || service == 2 || service == 5) && byte % 32 >= 0x0d && byte % 32 <= 0x12;
    const bool response = of_service || byte == 0x81 || byte == 0xc0;
    EXPECT_EQ(row(Opcode(static_cast<std::uint8_t>(byte))).response(), response) << byte;
  }
}

TEST(OpcodeTable, EachOpcodeHasItsExtensionHeaders) {
  EXPECT_EQ(rc(Operation::SendFirst).header_bytes, 0);
  EXPECT_EQ(rc(Operation::SendLastImm).headers, kImmDt);
  EXPECT_EQ(rc(Operation::SendOnlyInv).headers, kIeth);
  EXPECT_EQ(rc(Operation::WriteFirst).headers, kReth);
  EXPECT_EQ(rc(Operation::WriteMiddle).headers, 0);
  EXPECT_EQ(rc(Operation::WriteOnlyImm).headers, kReth | kImmDt);
  EXPECT_EQ(rc(Operation::WriteOnlyImm).header_bytes, 20);
  EXPECT_EQ(rc(Operation::ReadRequest).header_bytes, 16);
  EXPECT_EQ(rc(Operation::FetchAdd).header_bytes, 28);
  EXPECT_EQ(rc(Operation::AtomicAcknowledge).header_bytes, 12);
  EXPECT_EQ(rc(Operation::ReadResponseMiddle).headers, 0);
  EXPECT_EQ(row(Opcode(ServiceType::Ud, Operation::SendOnlyImm)).headers, kDeth | kImmDt);
  EXPECT_EQ(row(Opcode(ServiceType::Ud, Operation::SendOnlyImm)).header_bytes, 12);
}

// RC with an XRCETH, which responses do not have.
TEST(OpcodeTable, XrcHasTheOperationsOfRcWithAnXrcethInRequests) {
  for (unsigned operation = 0; operation < 32; ++operation) {
    const OpcodeRow& of_rc = rc(static_cast<Operation>(operation));
    const OpcodeRow& xrc = row(Opcode(ServiceType::Xrc, static_cast<Operation>(operation)));
    const int more = of_rc.known() && !of_rc.response() ? kXrcEth : 0;
    EXPECT_EQ(xrc.headers, of_rc.headers | more) << operation;
    EXPECT_EQ(xrc.header_bytes, of_rc.header_bytes + (more != 0 ? 4 : 0)) << operation;
    EXPECT_EQ(xrc.family, of_rc.family) << operation;
    EXPECT_EQ(xrc.place, of_rc.place) << operation;
    EXPECT_EQ(xrc.payload, of_rc.payload) << operation;
  }
}

TEST(OpcodeTable, HeadersAreAtMostTheMaximum) {
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_LE(header_bytes(Opcode(static_cast<std::uint8_t>(byte))), kMaxHeaderBytes);
  }
}

TEST(OpcodeTable, PlaceDeterminesWhereAMessageBeginsAndEnds) {
  EXPECT_TRUE(rc(Operation::SendFirst).begins());
  EXPECT_FALSE(rc(Operation::SendFirst).ends());
  EXPECT_FALSE(rc(Operation::WriteMiddle).begins() || rc(Operation::WriteMiddle).ends());
  EXPECT_TRUE(rc(Operation::WriteLastImm).ends());
  EXPECT_TRUE(rc(Operation::ReadRequest).begins() && rc(Operation::ReadRequest).ends());
  EXPECT_TRUE(rc(Operation::CmpSwap).begins() && rc(Operation::CmpSwap).ends());
}

TEST(OpcodeTable, AReceiveIsCompletedBySendsAndImmediateData) {
  std::set<int> those;
  for (int byte = 0; byte < 0x20; ++byte) {
    if (row(Opcode(static_cast<std::uint8_t>(byte))).completes_receive()) those.insert(byte);
  }
  EXPECT_EQ(those, (std::set<int>{0x02, 0x03, 0x04, 0x05, 0x09, 0x0b, 0x16, 0x17}));
}

TEST(OpcodeTable, PayloadLengthsFollowTheRuleOfTheOpcode) {
  EXPECT_TRUE(payload_fits(PayloadRule::None, 0, 1024));
  EXPECT_FALSE(payload_fits(PayloadRule::None, 1, 1024));
  EXPECT_TRUE(payload_fits(PayloadRule::Full, 1024, 1024));
  EXPECT_FALSE(payload_fits(PayloadRule::Full, 1020, 1024));
  EXPECT_FALSE(payload_fits(PayloadRule::Nonempty, 0, 1024));
  EXPECT_TRUE(payload_fits(PayloadRule::Nonempty, 1, 1024));
  EXPECT_TRUE(payload_fits(PayloadRule::Nonempty, 1024, 1024));
  EXPECT_FALSE(payload_fits(PayloadRule::Nonempty, 1025, 1024));
  EXPECT_TRUE(payload_fits(PayloadRule::Any, 0, 1024));
  EXPECT_FALSE(payload_fits(PayloadRule::Any, 1025, 1024));
  EXPECT_EQ(rc(Operation::SendFirst).payload, PayloadRule::Full);
  EXPECT_EQ(rc(Operation::ReadResponseLast).payload, PayloadRule::Nonempty);
  EXPECT_EQ(rc(Operation::WriteOnly).payload, PayloadRule::Any);
}

}  // namespace
}  // namespace urnic::ib
