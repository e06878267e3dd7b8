#include "ib/check.h"

#include <gtest/gtest.h>

#include "ib/icrc.h"
#include "support/golden.h"

namespace urnic::ib {
namespace {

using urnic::test::Bytes;
using verbs::QpState;

struct CheckTest : testing::Test {
  CheckTest() {
    qp.number = 0x11;
    qp.av.remote = *IpAddress::parse("192.0.2.1");
    qp.av.local = *IpAddress::parse("192.0.2.2");
    header.bth.opcode = Opcode(ServiceType::Rc, Operation::SendOnly);
    header.bth.dest_qp = 0x11;
  }
  Outcome<Half, Drop> verdict(QpState state = QpState::Rts) const {
    return check(header, source, &qp, state);
  }
  void expect_drop(Drop d, QpState state = QpState::Rts) const {
    const auto v = verdict(state);
    ASSERT_FALSE(v.ok());
    EXPECT_EQ(v.error(), d) << name(v.error());
  }

  QpAttributes qp;
  PacketHeader header;
  IpAddress source = *IpAddress::parse("192.0.2.1");
};

TEST_F(CheckTest, RequestsGoToTheResponderAndResponsesToTheRequester) {
  ASSERT_TRUE(verdict().ok());
  EXPECT_EQ(*verdict(), Half::Responder);
  header.bth.opcode = Opcode(ServiceType::Rc, Operation::Acknowledge);
  ASSERT_TRUE(verdict().ok());
  EXPECT_EQ(*verdict(), Half::Requester);
}

// proves: IB-2
TEST_F(CheckTest, AnUnknownQueuePairOrAnotherServiceIsDroppedSilently) {
  const auto nobody = check(header, source, nullptr, QpState::Rts);
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error(), Drop::NoQueuePair);
  for (const ServiceType s : {ServiceType::Uc, ServiceType::Ud, ServiceType::Manufacturer6}) {
    header.bth.opcode = Opcode(s, Operation::SendOnly);
    expect_drop(Drop::WrongService);
  }
}

// proves: IB-164
TEST_F(CheckTest, AnXrcEndAcceptsPacketsForItsOwnHalfOnly) {
  qp.service = ServiceType::Xrc;
  header.bth.opcode = Opcode(ServiceType::Xrc, Operation::SendOnly);
  expect_drop(Drop::WrongService);
  header.bth.opcode = Opcode(ServiceType::Xrc, Operation::Acknowledge);
  ASSERT_TRUE(verdict().ok());
  EXPECT_EQ(*verdict(), Half::Requester);
  qp.xrc.receives = true;
  expect_drop(Drop::WrongService);
  header.bth.opcode = Opcode(ServiceType::Xrc, Operation::SendOnly);
  ASSERT_TRUE(verdict().ok());
  EXPECT_EQ(*verdict(), Half::Responder);
  EXPECT_TRUE(verdict(QpState::Rtr).ok());
}

// proves: IB-164
TEST_F(CheckTest, XrcAndRcPacketsAreDroppedByEachOther) {
  qp.service = ServiceType::Xrc;
  header.bth.opcode = Opcode(ServiceType::Rc, Operation::Acknowledge);
  expect_drop(Drop::WrongService);
  qp.xrc.receives = true;
  header.bth.opcode = Opcode(ServiceType::Rc, Operation::SendOnly);
  expect_drop(Drop::WrongService);
  qp = {};
  qp.av.remote = source;
  header.bth.opcode = Opcode(ServiceType::Xrc, Operation::SendOnly);
  expect_drop(Drop::WrongService);
}

// Hellos, SACKs and CNPs belong to no service.
TEST_F(CheckTest, EitherEndOfXrcAcceptsHellosSacksAndCnps) {
  qp.service = ServiceType::Xrc;
  for (const bool receives : {false, true}) {
    qp.xrc.receives = receives;
    header.bth.opcode = kCnpOpcode;
    EXPECT_TRUE(verdict().ok());
    header.bth.opcode = kHelloOpcode;
    qp.selective = false;
    expect_drop(Drop::WrongService);
    qp.selective = true;
    EXPECT_TRUE(verdict().ok());
  }
}

// proves: S-10
TEST_F(CheckTest, ACnpIsForARequesterOfAReliableConnectionAndFromItsPeer) {
  header.bth.opcode = kCnpOpcode;
  ASSERT_TRUE(verdict().ok());
  EXPECT_EQ(*verdict(), Half::Requester);
  expect_drop(Drop::WrongState, QpState::Rtr);
  source = *IpAddress::parse("192.0.2.9");
  expect_drop(Drop::WrongAddress);
  for (const ServiceType s : {ServiceType::Uc, ServiceType::Ud}) {
    qp.service = s;
    expect_drop(Drop::WrongService);
  }
}

// proves: IB-132
TEST_F(CheckTest, PkeysMatchInTheLower15BitsWithAtLeastOneFullMember) {
  EXPECT_TRUE(pkeys_match(0xffff, 0xffff));
  EXPECT_TRUE(pkeys_match(0xffff, 0x7fff));
  EXPECT_TRUE(pkeys_match(0x1234, 0x9234));
  EXPECT_FALSE(pkeys_match(0x1234, 0x1234));  // two limited members
  EXPECT_FALSE(pkeys_match(0x9234, 0x9235));
  EXPECT_FALSE(pkeys_match(0x8000, 0x8000));
  EXPECT_FALSE(pkeys_match(0, 0x8000));
}

// proves: IB-132, IB-2
TEST_F(CheckTest, APkeyMismatchIsDroppedSilentlyForEveryService) {
  for (const ServiceType s : {ServiceType::Rc, ServiceType::Uc, ServiceType::Ud}) {
    qp.service = s;
    header.bth.opcode = Opcode(s, Operation::SendOnly);
    header.bth.pkey = 0x7fff;
    EXPECT_TRUE(verdict().ok());
    header.bth.pkey = 0x1234;
    expect_drop(Drop::BadPkey);
  }
}

TEST_F(CheckTest, AConnectedQueuePairAcceptsPacketsFromItsPeerOnly) {
  for (const ServiceType s : {ServiceType::Rc, ServiceType::Uc}) {
    qp.service = s;
    header.bth.opcode = Opcode(s, Operation::SendOnly);
    source = *IpAddress::parse("192.0.2.1");
    EXPECT_TRUE(verdict().ok());
    source = *IpAddress::parse("192.0.2.3");
    expect_drop(Drop::WrongAddress);
  }
  qp.service = ServiceType::Ud;
  header.bth.opcode = Opcode(ServiceType::Ud, Operation::SendOnly);
  EXPECT_TRUE(verdict().ok());
}

TEST_F(CheckTest, ADatagramNeedsTheQkey) {
  qp.service = ServiceType::Ud;
  qp.qkey = 0x80010000;
  header.bth.opcode = Opcode(ServiceType::Ud, Operation::SendOnly);
  header.deth.qkey = 0x80010001;
  expect_drop(Drop::BadQkey);
  header.deth.qkey = 0x80010000;
  EXPECT_TRUE(verdict().ok());
}

TEST_F(CheckTest, AStateThatAcceptsNothingDropsSilently) {
  for (const QpState s : {QpState::Reset, QpState::Init, QpState::Error}) {
    header.bth.opcode = Opcode(ServiceType::Rc, Operation::SendOnly);
    expect_drop(Drop::WrongState, s);
    header.bth.opcode = Opcode(ServiceType::Rc, Operation::Acknowledge);
    expect_drop(Drop::WrongState, s);
  }
  header.bth.opcode = Opcode(ServiceType::Rc, Operation::SendOnly);
  EXPECT_TRUE(verdict(QpState::Rtr).ok());
  EXPECT_TRUE(verdict(QpState::Sqd).ok());
  header.bth.opcode = Opcode(ServiceType::Rc, Operation::Acknowledge);
  expect_drop(Drop::WrongState, QpState::Rtr);  // nothing is outstanding
  EXPECT_TRUE(verdict(QpState::Sqd).ok());
}

struct OpenTest : CheckTest {
  OpenTest() {
    fields.source = qp.av.remote;
    fields.destination = qp.av.local;
    fields.source_port = 0xc001;
  }
  Bytes packet() const {
    Bytes out(packet_bytes(header.bth.opcode, 6));
    emit_packet(header, Bytes(6, 0x77), out.data());
    seal(headers().view(), out);
    return out;
  }
  IpUdpHeaders headers() const {
    return pseudo_headers(fields, packet_bytes(header.bth.opcode, 6));
  }
  Drop drop_of(const Bytes& b) const {
    const auto p = open_packet(headers().view(), b);
    EXPECT_FALSE(p.ok());
    return p.ok() ? Drop{} : p.error();
  }
  DatagramFields fields;
};

TEST_F(OpenTest, AWholePacketIsOpened) {
  const Bytes b = packet();
  const auto p = open_packet(headers().view(), b);
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->payload.size(), 6u);
  EXPECT_EQ(p->header.bth.dest_qp, 0x11u);
}

// proves: IB-2
TEST_F(OpenTest, TruncatedOrDamagedPacketsAndOtherVersionsAreDroppedSilently) {
  const Bytes good = packet();
  for (std::size_t n = 0; n < good.size(); ++n) {
    const Drop d = drop_of(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)));
    EXPECT_EQ(d, n < 20 || n % 4 != 0 ? Drop::Malformed : Drop::BadIcrc) << n;
  }
  Bytes bad = good;
  bad[13] ^= 1;
  EXPECT_EQ(drop_of(bad), Drop::BadIcrc);
  header.bth.version = 1;
  EXPECT_EQ(drop_of(packet()), Drop::BadVersion);
}

TEST(DropCounters, EachReasonHasItsOwnCounterAndName) {
  DropCounters counters;
  counters.count(Drop::BadQkey);
  counters.count(Drop::BadQkey);
  counters.count(Drop::Malformed);
  EXPECT_EQ(counters.of(Drop::BadQkey), 2u);
  EXPECT_EQ(counters.of(Drop::Malformed), 1u);
  EXPECT_EQ(counters.of(Drop::BadIcrc), 0u);
  EXPECT_EQ(name(Drop::Malformed), "malformed");
  EXPECT_EQ(name(Drop::BadQkey), "bad_qkey");
}

}  // namespace
}  // namespace urnic::ib
