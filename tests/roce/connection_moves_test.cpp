// The values that a connection moves its queue pairs to, compared with a connection of Linux
// rdma_cm (tests/golden/roce): the first PSNs of both ends.
#include "roce/connection_moves.h"

#include <gtest/gtest.h>

#include "ib/packet.h"
#include "ib_cm/consent.h"
#include "ib_cm/gsi.h"
#include "ib_cm/messages.h"
#include "tests/ib/roce_capture.h"

namespace urnic::roce {
namespace {

// proves: IB-135
TEST(RoceMoves, EachEndBeginsAtThePsnOfTheOther) {
  std::optional<ib::Psn> asked, answered, send, read;
  for (const auto& captured : ib::test::roce_capture("rxe-rxe-rping-ipv4-C2-S3000.pcap")) {
    const auto packet = ib::parse_packet(captured.datagram);
    ASSERT_TRUE(packet.ok());
    const ib::Bth& bth = packet->header.bth;
    if (bth.dest_qp == ib_cm::kGsiQpn) {
      const auto mad = ib_cm::open_gsi(*packet);
      ASSERT_TRUE(mad.ok());
      const auto h = ib_cm::read_header(*mad);
      ASSERT_TRUE(h.ok());
      if (h->attribute == ib_cm::Attribute::Req) asked = ib_cm::read_req(*mad).psn;
      if (h->attribute == ib_cm::Attribute::Rep) answered = ib_cm::read_rep(*mad).psn;
    } else if (bth.opcode == ib::Opcode(ib::ServiceType::Rc, ib::Operation::SendOnly)) {
      if (!send) send = bth.psn;  // of the active end
    } else if (bth.opcode == ib::Opcode(ib::ServiceType::Rc, ib::Operation::ReadRequest)) {
      if (!read) read = bth.psn;  // of the passive end
    }
  }
  ASSERT_TRUE(asked && answered && send && read);
  ib_cm::QpValues passive;
  passive.psn = *answered;
  const ib_cm::AddressPair addresses{IpAddress::v4(10, 77, 0, 2), IpAddress::v4(10, 77, 0, 3)};
  EXPECT_EQ(to_rts(passive, {}, 1).sq_psn, send->value());
  EXPECT_EQ(to_rtr(addresses, passive, {}, 0x11, asked->value()).rq_psn, read->value());
}

// proves: S-7
TEST(RoceMoves, EachAgreedExtensionIsAppliedSeparately) {
  using Consent = roce::QpChange::Consent;
  EXPECT_EQ(agreed({}, 0).consent, Consent::Refused);
  EXPECT_EQ(agreed({}, ib_cm::kExtensionSelective).consent, Consent::Given);
  EXPECT_FALSE(agreed({}, ib_cm::kExtensionSelective).parts) << "it may know one at a time";
  EXPECT_TRUE(agreed({}, ib_cm::kExtensionSelective | ib_cm::kExtensionParts).parts);
  EXPECT_FALSE(agreed({}, ib_cm::kExtensionParts).parts);
}

// proves: IB-128
TEST(RoceMoves, AChosenTimeoutReplacesThatOfThePath) {
  ib_cm::PathValues path;
  path.ack_timeout = 19;
  EXPECT_EQ(to_rts({}, path, 1).ack_timeout, 19);
  EXPECT_EQ(to_rts({}, path, 1, {.ack_timeout = 0}).ack_timeout, 0) << "for ever";
  EXPECT_EQ(to_rts({}, path, 1, {.ack_timeout = 21}).ack_timeout, 21);
}

TEST(RoceMoves, AChosenTrafficClassOrTimerReplacesThatOfThePath) {
  const ib_cm::AddressPair addresses{IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2)};
  ib_cm::PathValues path;
  path.traffic_class = 72;
  EXPECT_EQ(to_rtr(addresses, {}, path, 0x11, 0).av.traffic_class, 72);
  EXPECT_EQ(to_rtr(addresses, {}, path, 0x11, 0, {.traffic_class = 104}).av.traffic_class, 104);
  EXPECT_EQ(to_rtr(addresses, {}, path, 0x11, 0, {.min_rnr_timer = 5}).min_rnr_timer, 5u);
}

TEST(RoceMoves, APeerWithoutAHopLimitGetsTheDefault) {
  const ib_cm::AddressPair addresses{IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2)};
  ib_cm::PathValues path;
  path.hop_limit = 0;
  EXPECT_EQ(to_rtr(addresses, {}, path, 0x11, 0).av.hop_limit, 64);
  path.hop_limit = 3;
  EXPECT_EQ(to_rtr(addresses, {}, path, 0x11, 0).av.hop_limit, 3);
}

TEST(RoceMoves, TheUdpSourcePortDependsOnBothQueuePairs) {
  ib_cm::QpValues peer;
  peer.qpn = 0x123456;
  const ib_cm::AddressPair addresses{IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2)};
  const std::uint16_t port = to_rtr(addresses, peer, {}, 0x654321, 0).av.source_port;
  EXPECT_GE(port, 0xc000);
  peer.qpn = 0x654321;
  EXPECT_EQ(to_rtr(addresses, peer, {}, 0x123456, 0).av.source_port, port);
  peer.qpn = 0x654322;
  EXPECT_NE(to_rtr(addresses, peer, {}, 0x123456, 0).av.source_port, port);
}

}  // namespace
}  // namespace urnic::roce
