// Which NAK is sent, when, and how often.
#include "ib/check.h"
#include "responder_fixture.h"

namespace urnic::ib {
namespace {

using test::Bytes;
using test::counting;
using test::Response;

struct Naks : test::ResponderFixture {};

// proves: IB-5
TEST_F(Naks, AreAcknowledgesWithoutPayload) {
  const auto refused = [this](const ParsedPacket& p, Syndrome syndrome) {
    again();
    verdict(p);
    ResponsePacket out;
    ASSERT_TRUE(responder().next_response(&out));
    EXPECT_EQ(out.header.bth.opcode, Opcode(ServiceType::Rc, Operation::Acknowledge));
    EXPECT_EQ(out.header.aeth.syndrome, syndrome);
    EXPECT_TRUE(out.payload.empty());
    EXPECT_EQ(packet_bytes(out.header.bth.opcode, out.payload.size()), 20u);
  };
  refused(packet(Operation::SendOnly, psn + 1), Syndrome::nak(NakCode::SequenceError));
  refused(packet(Operation::SendOnly, psn), Syndrome::rnr_nak(12));
  refused(packet(Operation::SendMiddle, psn), Syndrome::nak(NakCode::InvalidRequest));
  refused(read(psn, kBytes, 1), Syndrome::nak(NakCode::RemoteAccess));
  // In place of a READ response, too.
  next(read(qp.rq_psn, 0, 300));
  again();
  EXPECT_EQ(next(read(psn, 0, 300)), Verdict::Accept);
  table.invalidate(rkey, qp.peer());
  EXPECT_EQ(only_response().operation, Operation::Acknowledge);
}

// proves: IB-25
TEST_F(Naks, AreSentAfterTheResponsesToEarlierRequests) {
  post(1);
  for (const Verdict why : {Verdict::OutOfSequence, Verdict::NotReady, Verdict::InvalidRequest,
                            Verdict::RemoteAccess}) {
    again();
    const Psn first = psn;
    next(read(psn, 0, 2 * kPmtu));
    next(fetch_add(psn, 64, 1));
    next(write_only(psn, 512, counting(16)));
    ParsedPacket p = packet(Operation::SendMiddle, psn, counting(kPmtu));
    if (why == Verdict::OutOfSequence) p = write_only(psn + 1, 0, counting(4));
    if (why == Verdict::NotReady) {
      while (rq.posted() != 0) rq.pop();
      p = packet(Operation::SendOnly, psn);
    }
    if (why == Verdict::RemoteAccess) p = read(psn, kBytes, 1);
    EXPECT_EQ(verdict(p), why);
    EXPECT_EQ(Bytes(target() + 512, target() + 528), counting(16));
    const auto all = responses();
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[1].operation, Operation::ReadResponseLast);
    EXPECT_EQ(all[2].operation, Operation::AtomicAcknowledge);
    EXPECT_NE(all[3].syndrome.kind(), AckKind::Ack);
    EXPECT_EQ(all[3].psn, first + 4);
    EXPECT_EQ(all[3].msn, Msn(3));
  }
}

// proves: IB-51
TEST_F(Naks, AGapDrawsANakWithTheExpectedPsn) {
  next(write_only(psn, 0, counting(4)));
  responses();
  target()[0] = 0x33;
  for (std::uint32_t ahead : {1u, 2u, 7u}) {
    EXPECT_EQ(verdict(write_only(psn + ahead, 0, counting(4))), Verdict::OutOfSequence);
  }
  const Response nak = only_response();
  EXPECT_TRUE(nak.is_nak(NakCode::SequenceError));
  EXPECT_EQ(nak.psn, psn);
  EXPECT_EQ(nak.msn, Msn(1));
  EXPECT_EQ(target()[0], 0x33);
  EXPECT_EQ(responder().state().expected, psn);
}

// proves: IB-52
TEST_F(Naks, FurtherGapsAreSilentUntilSomethingNewIsAccepted) {
  verdict(write_only(psn + 1, 0, counting(4)));
  EXPECT_EQ(responses().size(), 1u);
  for (std::uint32_t ahead = 2; ahead < 20; ++ahead) {
    verdict(write_only(psn + ahead, 0, counting(4)));
    EXPECT_TRUE(responses().empty());
  }
  // A duplicate is answered, and does not allow another NAK.
  verdict(write_only(psn - 1, 0, counting(4)));
  EXPECT_TRUE(only_response().is_ack());
  verdict(write_only(psn + 1, 0, counting(4)));
  EXPECT_TRUE(responses().empty());
  next(write_only(psn, 0, counting(4)));
  EXPECT_TRUE(only_response().is_ack());
  verdict(write_only(psn + 1, 0, counting(4)));
  const Response nak = only_response();
  EXPECT_TRUE(nak.is_nak(NakCode::SequenceError));
  EXPECT_EQ(nak.psn, psn);
}

// proves: IB-53
TEST_F(Naks, DuplicatesAreAnsweredWhileSomethingIsMissing) {
  const Psn first = psn;
  next(read(psn, 0, 8));
  next(write_only(psn, 0, counting(4)));
  responses();
  verdict(write_only(psn + 1, 0, counting(4)));
  EXPECT_EQ(responses().size(), 1u);
  verdict(read(first, 0, 8));
  EXPECT_EQ(only_response().operation, Operation::ReadResponseOnly);
  verdict(write_only(first + 1, 0, counting(4)));
  const Response ack = only_response();
  EXPECT_TRUE(ack.is_ack());
  EXPECT_EQ(ack.psn, psn - 1);
}

// The lost packet arrives in the same burst, after a later one.
TEST_F(Naks, APendingNakNamesThePacketMissingWhenItIsSent) {
  verdict(write_only(psn + 1, 0, counting(4)));
  next(write_only(psn, 0, counting(4)));
  const Response nak = only_response();
  EXPECT_TRUE(nak.is_nak(NakCode::SequenceError));
  EXPECT_EQ(nak.psn, psn);
  // Then no packet is missing any more.
  again();
  verdict(write_only(psn + 1, 0, counting(4)));
  next(write_only(psn, 0, counting(4)));
  next(write_only(psn, 0, counting(4)));
  const Response ack = only_response();
  EXPECT_TRUE(ack.is_ack());
  EXPECT_EQ(ack.psn, psn - 1);
}

// proves: IB-54
TEST_F(Naks, WithoutAReceiveAnRnrNakIsSent) {
  EXPECT_EQ(verdict(packet(Operation::SendOnly, psn, counting(4))), Verdict::NotReady);
  Response nak = only_response();
  EXPECT_EQ(nak.operation, Operation::Acknowledge);
  EXPECT_EQ(nak.syndrome.kind(), AckKind::RnrNak);
  EXPECT_EQ(nak.psn, psn);
  EXPECT_EQ(responder().state().expected, psn);
  EXPECT_FALSE(responder().failed());
  // The next packet is out of sequence, without a second NAK.
  EXPECT_EQ(verdict(packet(Operation::SendOnly, psn + 1, counting(4))), Verdict::OutOfSequence);
  EXPECT_TRUE(responses().empty());
  // It is repeated too early, and then in time.
  EXPECT_EQ(verdict(packet(Operation::SendOnly, psn, counting(4))), Verdict::NotReady);
  EXPECT_EQ(only_response().psn, psn);
  post(1);
  EXPECT_EQ(rq.posted(), 1u);
  EXPECT_EQ(next(packet(Operation::SendOnly, psn, counting(4))), Verdict::Accept);
  EXPECT_TRUE(only_response().is_ack());
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].byte_len, 4u);
}

// A receive is posted before the NAK is sent.
TEST_F(Naks, APendingRnrNakIsDroppedWhenTheRequestIsAccepted) {
  verdict(packet(Operation::SendOnly, psn, counting(4)));
  post(1);
  next(packet(Operation::SendOnly, psn, counting(4)));
  EXPECT_TRUE(only_response().is_ack());
}

// proves: IB-55
TEST_F(Naks, AnRnrNakHasTheTimerOfTheQueuePair) {
  for (std::uint8_t code = 0; code < 32; ++code) {
    qp.min_rnr_timer = code;
    verdict(packet(Operation::SendFirst, psn, counting(kPmtu)));
    EXPECT_EQ(only_response().syndrome, Syndrome::rnr_nak(code));
  }
}

// proves: IB-57
TEST_F(Naks, AWriteWithImmediateNeedsItsReceiveAtItsLastPacket) {
  EXPECT_EQ(next(write(Operation::WriteFirst, psn, 0, 300, counting(kPmtu))), Verdict::Accept);
  ParsedPacket last = packet(Operation::WriteLastImm, psn, counting(44, 9));
  last.header.immediate = 0x01020304;
  EXPECT_EQ(verdict(last), Verdict::NotReady);
  const Response nak = only_response();
  EXPECT_EQ(nak.syndrome, Syndrome::rnr_nak(12));
  EXPECT_EQ(nak.psn, psn);
  post(4);
  EXPECT_EQ(next(last), Verdict::Accept);
  EXPECT_TRUE(only_response().is_ack());
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].wr_id, 4u);
  EXPECT_EQ(completions[0].byte_len, 300u);
  EXPECT_TRUE(completions[0].with_immediate);
  EXPECT_EQ(completions[0].immediate, 0x01020304u);
  EXPECT_EQ(completions[0].op, verbs::WrOp::WriteImm);
  EXPECT_EQ(Bytes(target() + kPmtu, target() + 300), counting(44, 9));
}

// As done by the owner of the queue pair.
// proves: IB-11, IB-107, IB-134
TEST_F(Naks, APacketInInitIsDroppedAndServedWhenItIsRepeated) {
  qp.av.remote = *IpAddress::parse("192.0.2.1");
  post(1);
  const ParsedPacket send = packet(Operation::SendOnly, psn, counting(4));
  const auto arrive = [&](verbs::QpState state) {
    const auto half = check(send.header, qp.av.remote, &qp, state);
    if (!half.ok()) return half.error();
    verdict(send);
    return Drop::NoQueuePair;
  };
  for (const verbs::QpState s : {verbs::QpState::Init, verbs::QpState::Error}) {
    EXPECT_EQ(arrive(s), Drop::WrongState);
    EXPECT_EQ(responder().state().expected, qp.rq_psn);
    EXPECT_TRUE(responses().empty());
    EXPECT_EQ(rq.posted(), 1u);
  }
  arrive(verbs::QpState::Rtr);
  EXPECT_TRUE(only_response().is_ack());
  EXPECT_EQ(completions.size(), 1u);
  EXPECT_EQ(responder().state().expected, qp.rq_psn + 1);
}

}  // namespace
}  // namespace urnic::ib
