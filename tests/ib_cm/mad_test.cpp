// Packets to queue pair 1 that are or are not messages of connection management.
#include "ib_cm/mad.h"

#include <gtest/gtest.h>

#include <optional>

#include "ib_cm/counters.h"
#include "ib_cm/end.h"
#include "ib_cm/gsi.h"

namespace urnic::ib_cm {
namespace {

TEST(Mad, HeaderFieldsHaveTheOffsetsOfTheStandard) {
  const Mad m = make_mad({0x1122334455667788, Attribute::Rtu, 0x99aabbcc});
  const std::uint8_t header[24] = {1,    7,    2,    3,    0, 0,    0, 0, 0x11, 0x22, 0x33, 0x44,
                                   0x55, 0x66, 0x77, 0x88, 0, 0x14, 0, 0, 0x99, 0xaa, 0xbb, 0xcc};
  EXPECT_TRUE(std::equal(header, header + 24, m.begin()));
  const auto h = read_header(m);
  ASSERT_TRUE(h.ok());
  EXPECT_EQ(h->transaction, 0x1122334455667788u);
  EXPECT_EQ(h->attribute, Attribute::Rtu);
  EXPECT_EQ(h->modifier, 0x99aabbccu);
}

struct Breach {
  std::size_t at;
  std::uint8_t byte;
  MadFault fault;
};
constexpr Breach kBreaches[] = {
    {0, 2, MadFault::BaseVersion},   {1, 3, MadFault::Class},
    {1, 0x81, MadFault::Class},      {2, 1, MadFault::ClassVersion},
    {3, 1, MadFault::Method},        {3, 0x81, MadFault::Method},
    {16, 1, MadFault::Attribute},    {17, 0x0f, MadFault::Attribute},
    {17, 0x1b, MadFault::Attribute},
};

TEST(Mad, EveryInvalidMadHasItsFault) {
  for (const Breach& breach : kBreaches) {
    Mad m = make_mad({1, Attribute::Req, 0});
    m[breach.at] = breach.byte;
    const auto h = read_header(m);
    ASSERT_FALSE(h.ok()) << breach.at;
    EXPECT_EQ(h.error(), breach.fault) << breach.at;
  }
  const Mad m = make_mad({1, Attribute::Req, 0});
  for (std::size_t n = 0; n < kMadBytes; ++n) {
    EXPECT_EQ(read_header(ByteView(m).first(n)).error(), MadFault::Length) << n;
  }
  test::Bytes more(kMadBytes + 1);
  std::copy(m.begin(), m.end(), more.begin());
  EXPECT_EQ(read_header(more).error(), MadFault::Length);
}

// proves: IB-142
TEST(Mad, AForeignMadIsCountedAndNotAnswered) {
  test::End e(3);
  e.manager.listen({test::kService, {}, Transport::Rc, 4});
  test::End peer(2);
  ASSERT_TRUE(peer.manager.connections().connect(peer.connect_to(e.me), {}, Instant()).ok());
  const Mad good = peer.mads().at(0).mad;
  for (const Breach& breach : kBreaches) {
    Mad m = good;
    m[breach.at] = breach.byte;
    const std::uint64_t before = e.manager.counters().of(static_cast<Drop>(breach.fault));
    e.manager.take(e.to(peer.me), m, Instant());
    EXPECT_EQ(e.manager.counters().of(static_cast<Drop>(breach.fault)), before + 1) << breach.at;
  }
  for (std::size_t n = 0; n < kMadBytes; ++n) {
    e.manager.take(e.to(peer.me), ByteView(good).first(n), Instant());
  }
  EXPECT_EQ(e.manager.counters().of(Drop::Length), kMadBytes);
  EXPECT_TRUE(e.mads().empty());
  EXPECT_TRUE(e.events().empty());
  EXPECT_EQ(e.manager.size(), 0u);
  e.manager.take(e.to(peer.me), good, Instant());
  EXPECT_EQ(e.events().size(), 1u);
}

class Gsi : public ::testing::Test {
 protected:
  ib::ParsedPacket packet() const { return {gsi_header(ib::Psn(9)), mad}; }
  // nullopt: it is a MAD.
  static std::optional<GsiFault> fault_of(const ib::ParsedPacket& p) {
    const auto opened = open_gsi(p);
    return opened.ok() ? std::nullopt : std::optional(opened.error());
  }
  Mad mad = make_mad({1, Attribute::Req, 0});
};

TEST_F(Gsi, AnOutgoingPacketIsAcceptedAsAnIncomingOne) {
  const auto opened = open_gsi(packet());
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->data(), mad.data());
  const ib::PacketHeader h = gsi_header(ib::Psn(9));
  EXPECT_EQ(ib::packet_bytes(h.bth.opcode, mad.size()), kGsiPacketBytes);
  EXPECT_EQ(kGsiPacketBytes, 280u);
}

// proves: IB-142
TEST_F(Gsi, AWrongQkeyPartitionSourceOpcodeOrLengthIsRejected) {
  ib::ParsedPacket p = packet();
  p.header.deth.qkey = 0x80010001;
  EXPECT_EQ(fault_of(p), GsiFault::Qkey);
  p = packet();
  p.header.bth.pkey = 0x8001;
  EXPECT_EQ(fault_of(p), GsiFault::Pkey);
  p = packet();
  p.header.bth.pkey = 0x7fff;
  EXPECT_TRUE(open_gsi(p).ok()) << "a limited member may talk to a full one";
  p = packet();
  p.header.deth.source_qp = 2;
  EXPECT_EQ(fault_of(p), GsiFault::SourceQp);
  p = packet();
  p.header.bth.opcode = ib::Opcode(0x65);
  EXPECT_EQ(fault_of(p), GsiFault::Opcode);
  p = packet();
  p.header.bth.opcode = ib::Opcode(0x04);
  EXPECT_EQ(fault_of(p), GsiFault::Opcode);
  p = packet();
  p.payload = ByteView(mad).first(252);
  EXPECT_EQ(fault_of(p), GsiFault::Length);
}

TEST(MadDrops, EveryReasonHasAName) {
  for (std::size_t i = 0; i < kDrops; ++i) {
    EXPECT_FALSE(name(static_cast<Drop>(i)).empty());
  }
}

}  // namespace
}  // namespace urnic::ib_cm
