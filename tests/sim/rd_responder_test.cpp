// How an EE context handles requests, and its answers.
#include "sim/rd/rd_responder.h"

#include "tests/sim/rd_bench.h"

namespace urnic::sim {
namespace {

using namespace ib;
using test::Bytes;
using test::RdBench;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using verbs::QpState;
using verbs::Status;
using enum QpState;

struct RdResponding : RdBench {
  Psn first() const { return ee.rq_psn; }
  ParsedPacket from(std::uint32_t source, std::uint32_t dest, ParsedPacket p) {
    p.header.deth.source_qp = source;
    p.header.bth.dest_qp = dest;
    return p;
  }
  // `p` at the expected PSN is answered with this NAK, and nothing changes.
  void expect_refused(const ParsedPacket& p, NakCode code) {
    const Psn expected = serves().expected();
    come(p);
    const Seen s = only_response();
    EXPECT_EQ(s.operation(), Operation::Acknowledge);
    EXPECT_EQ(s.syndrome(), Syndrome::nak(code)) << int{s.syndrome().byte};
    EXPECT_EQ(s.psn(), expected.value());
    EXPECT_EQ(s.h.bth.dest_qp, p.header.deth.source_qp);
    EXPECT_EQ(s.h.ee_context, kPeerEe);
    EXPECT_EQ(serves().expected(), expected);
    EXPECT_EQ(context().state, Rts);
  }
};

// ---- delivery

// proves: IB-173
TEST_F(RdResponding, EachQueuePairGetsItsMessagesAndAcksHaveNoCredits_o9_72) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    post_receive(i + 1, 1000, 0x11 + i);
    come(from(0x901 + i, 0x11 + i, send(Operation::SendOnly, first() + i, 20 + i)));
    const Seen s = only_response();
    EXPECT_EQ(s.syndrome().byte, 0u);
    EXPECT_EQ(s.h.bth.dest_qp, 0x901 + i);
    EXPECT_EQ(s.psn(), (first() + i).value());
    EXPECT_EQ(s.h.aeth.msn, Msn(i + 1));
    ASSERT_EQ(told.size(), i + 1);
    EXPECT_EQ(told[i].qp, 0x11 + i);
    EXPECT_EQ(told[i].c.byte_len, 20 + i);
  }
}

TEST_F(RdResponding, ASendOfSeveralPacketsFillsItsReceive) {
  post_receive(3);
  come(send(Operation::SendFirst, first(), kPmtu));
  EXPECT_THAT(responses(), IsEmpty());
  come(send(Operation::SendMiddle, first() + 1, kPmtu));
  const ParsedPacket last = send(Operation::SendLastImm, first() + 2, 9);
  come(last);
  EXPECT_EQ(only_response().psn(), (first() + 2).value());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].c.byte_len, 2 * kPmtu + 9);
  EXPECT_TRUE(told[0].c.with_immediate);
  EXPECT_TRUE(
      std::equal(last.payload.begin(), last.payload.end(), memory.begin() + 3000 + 2 * kPmtu));
}

TEST_F(RdResponding, WritesReadsAndAtomicsAreCarriedOutAndAnswered) {
  come(write(Operation::WriteOnly, first(), 64, 8, Bytes{1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(written(64, 1)[0], 1);
  responses();
  ParsedPacket add = packet(Operation::FetchAdd, first() + 1);
  add.header.atomic = {kTarget + 64, rkey, 5, 0};
  come(add);
  Seen s = only_response();
  EXPECT_EQ(s.operation(), Operation::AtomicAcknowledge);
  EXPECT_EQ(s.h.original, 1u);
  EXPECT_EQ(written(64, 1)[0], 6);
  come(add);  // again: the same result, executed only once
  EXPECT_EQ(only_response().h.original, 1u);
  EXPECT_EQ(written(64, 1)[0], 6);
  come(read(first() + 2, 0, 2 * kPmtu + 10));
  const auto all = responses();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].operation(), Operation::ReadResponseFirst);
  EXPECT_EQ(all[1].operation(), Operation::ReadResponseMiddle);
  EXPECT_EQ(all[2].operation(), Operation::ReadResponseLast);
  EXPECT_EQ(all[2].psn(), (first() + 4).value());
  EXPECT_EQ(all[0].syndrome(), Syndrome::ack(0));
  EXPECT_EQ(serves().expected(), first() + 5);
}

// The end of its range is also its beginning.
TEST_F(RdResponding, ARepeatedReadOfNothingIsAnsweredAgain) {
  const ParsedPacket nothing = read(first(), 64, 0);
  for (int i = 0; i < 2; ++i) {
    come(nothing);
    const Seen s = only_response();
    EXPECT_EQ(s.operation(), Operation::ReadResponseOnly);
    EXPECT_EQ(s.psn(), first().value());
  }
  EXPECT_EQ(serves().counters().duplicates, 1u);
}

// ---- Invalid RD Request

// proves: IB-171
TEST_F(RdResponding, AQueuePairOfAnotherDomainIsAnInvalidRdRequest_o9_38) {
  host();
  add(0x21, kRdd + 1);
  post_receive(1, 1000, 0x21);
  expect_refused(from(0x901, 0x21, send(Operation::SendOnly, first(), 10)),
                 NakCode::InvalidRdRequest);
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(pair(0x21).state, Rts);
}

// proves: IB-171
TEST_F(RdResponding, AWrongQkeyIsAnInvalidRdRequest_C9_127) {
  post_receive(1);
  ParsedPacket p = send(Operation::SendOnly, first(), 10);
  p.header.deth.qkey ^= 1;
  expect_refused(p, NakCode::InvalidRdRequest);
}

// proves: IB-171
TEST_F(RdResponding, AnUnknownOrNonRdQueuePairIsAnInvalidRdRequest_C9_127) {
  expect_refused(from(0x901, 0x999, send(Operation::SendOnly, first(), 10)),
                 NakCode::InvalidRdRequest);
  again();
  qp.service = ServiceType::Ud;
  host();
  add(0x21, kRdd);
  post_receive(1, 1000, 0x21);
  expect_refused(from(0x901, 0x21, send(Operation::SendOnly, first(), 10)),
                 NakCode::InvalidRdRequest);
}

// proves: IB-171
TEST_F(RdResponding, AQueuePairThatDoesNotReceiveIsAnInvalidRdRequest_C9_127) {
  for (const QpState s : {Reset, Init, Error}) {
    again();
    host();
    RdQueuePair& to = add(0x21, kRdd, s == Error ? Init : s);
    if (s == Error) {
      EXPECT_TRUE(host().modify(to, Error, verbs::kQpAttrState).ok());
    }
    expect_refused(from(0x901, 0x21, send(Operation::SendOnly, first(), 10)),
                   NakCode::InvalidRdRequest);
  }
}

// proves: IB-171
TEST_F(RdResponding, InSqeAndSqdAQueuePairReceives) {
  host();
  post_receive(1);
  EXPECT_TRUE(host().modify(pair(), Sqd, verbs::kQpAttrState).ok());
  come(send(Operation::SendOnly, first(), 10));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
  bad_lkey = true;
  post(verbs::WrOp::Send, 10, 0x12);
  bad_lkey = false;
  requests();
  ASSERT_EQ(pair(0x12).state, Sqe);
  post_receive(2, 1000, 0x12);
  come(from(0x901, 0x12, send(Operation::SendOnly, first() + 1, 10)));
  EXPECT_EQ(told.back().c.status, Status::Success);
  EXPECT_EQ(told.back().qp, 0x12u);
}

// proves: IB-171, IB-132
TEST_F(RdResponding, ABadPkeyIsSilentlyDroppedByTheEeContext_o9_74) {
  post_receive(1);
  ParsedPacket p = send(Operation::SendOnly, first(), 10);
  p.header.bth.pkey = 0x1234;
  come(p);
  EXPECT_THAT(responses(), IsEmpty());
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(host().drops().of(Drop::BadPkey), 1u);
}

// A lost NAK is repeated, whatever has changed meanwhile; a RESYNC ends that.
// proves: IB-171
TEST_F(RdResponding, ARefusalLastsUntilAResync) {
  ParsedPacket p = send(Operation::SendOnly, first(), 10);
  p.header.deth.qkey ^= 1;
  expect_refused(p, NakCode::InvalidRdRequest);
  expect_refused(p, NakCode::InvalidRdRequest);
  post_receive(1);
  expect_refused(send(Operation::SendOnly, first(), 10), NakCode::InvalidRdRequest);
  come(send(Operation::SendOnly, first() + 1, 10));  // after it: no further NAK
  EXPECT_THAT(responses(), IsEmpty());
  come(resync(first() + 1));
  responses();
  come(send(Operation::SendOnly, first() + 2, 10));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
}

// ---- queue pairs of a message

// proves: IB-172
TEST_F(RdResponding, MiddleAndLastOfOtherQueuePairsAreIgnored_o9_38a1) {
  for (int which = 0; which < 2; ++which) {
    again();
    post_receive(1, 1000, 0x11), post_receive(2, 1000, 0x12);
    come(send(Operation::SendFirst, first(), kPmtu));
    const auto other = [&](ParsedPacket p) {
      return which == 0 ? from(0x902, 0x11, p) : from(kPeerQp, 0x12, p);
    };
    come(other(send(Operation::SendMiddle, first() + 1, kPmtu)));
    come(other(send(Operation::SendLast, first() + 1, 10)));
    EXPECT_THAT(responses(), IsEmpty());
    EXPECT_THAT(told, IsEmpty());
    EXPECT_EQ(serves().expected(), first() + 1);
    EXPECT_EQ(serves().counters().ignored, 2u);
    come(send(Operation::SendLast, first() + 1, 10));
    EXPECT_THAT(statuses(), ElementsAre(Status::Success));
  }
}

// proves: IB-172
TEST_F(RdResponding, DuplicatesFromOtherQueuePairsThanTheNewestAreIgnored_o9_38a1) {
  post_receive(1, 1000, 0x11), post_receive(2, 1000, 0x12);
  const ParsedPacket old = send(Operation::SendOnly, first(), 10);
  const ParsedPacket newest = from(0x902, 0x12, send(Operation::SendOnly, first() + 1, 10));
  come(old), come(newest);
  responses();
  come(old);
  EXPECT_THAT(responses(), IsEmpty());
  come(newest);
  const Seen s = only_response();
  EXPECT_EQ(s.psn(), (first() + 1).value());
  EXPECT_EQ(s.h.bth.dest_qp, 0x902u);
  EXPECT_EQ(told.size(), 2u);
}

// ---- the rules of RC within a message

TEST_F(RdResponding, AGapIsReportedOnceAndFilledByTheMissingPacket) {
  post_receive(1);
  come(send(Operation::SendFirst, first(), kPmtu));
  come(send(Operation::SendLast, first() + 2, 10));
  const Seen s = only_response();
  EXPECT_EQ(s.syndrome(), Syndrome::nak(NakCode::SequenceError));
  EXPECT_EQ(s.psn(), (first() + 1).value());
  come(send(Operation::SendLast, first() + 2, 10));
  EXPECT_THAT(responses(), IsEmpty());
  come(send(Operation::SendMiddle, first() + 1, kPmtu));
  come(send(Operation::SendLast, first() + 2, 10));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
}

TEST_F(RdResponding, WithoutAReceiveAnRnrNakRequestsARetry) {
  const ParsedPacket p = send(Operation::SendOnly, first(), 10);
  come(p);
  const Seen s = only_response();
  EXPECT_EQ(s.syndrome(), Syndrome::rnr_nak(12));
  EXPECT_EQ(s.psn(), first().value());
  post_receive(1);
  come(p);
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
}

// proves: IB-176
TEST_F(RdResponding, ARefusalEndsTheMessageButNotTheEeContext) {
  post_receive(1), post_receive(2, 100, 0x12);
  ParsedPacket p = write(Operation::WriteOnly, first(), 0, 8, Bytes(8, 1));
  p.header.reth.rkey ^= 1;
  expect_refused(p, NakCode::RemoteAccess);
  EXPECT_EQ(pair().state, Rts);
  come(resync(first() + 1));
  responses();
  expect_refused(send(Operation::SendMiddle, first() + 2, kPmtu).header.row().begins()
                     ? send(Operation::SendOnly, first() + 2, 10)
                     : from(kPeerQp, 0x11, send(Operation::SendFirst, first() + 2, 10)),
                 NakCode::InvalidRequest);  // a First that is too short
  come(resync(first() + 3));
  responses();
  come(send(Operation::SendOnly, first() + 4, 10));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
}

// proves: IB-176
TEST_F(RdResponding, ATooSmallReceiveFailsOnlyItsQueuePair) {
  post_receive(1, 100, 0x12), post_receive(2, 100, 0x12), post_receive(3);
  expect_refused(from(0x902, 0x12, send(Operation::SendOnly, first(), 101)),
                 NakCode::InvalidRequest);
  EXPECT_THAT(statuses(), ElementsAre(Status::LocalLength, Status::Flushed));
  EXPECT_EQ(pair(0x12).state, Error);
  EXPECT_THAT(moved, ElementsAre(std::pair(0x12u, Error)));
  come(resync(first() + 1));
  come(send(Operation::SendOnly, first() + 2, 10));
  EXPECT_EQ(told.back().c.status, Status::Success);
}

// proves: IB-176
TEST_F(RdResponding, ARestartedQueuePairRefusesTheRestOfItsMessage) {
  post_receive(1);
  come(send(Operation::SendFirst, first(), kPmtu));
  EXPECT_TRUE(host().modify(pair(), Error, verbs::kQpAttrState).ok());
  EXPECT_THAT(statuses(), ElementsAre(Status::Flushed));
  EXPECT_TRUE(host().modify(pair(), Reset, verbs::kQpAttrState).ok());
  bring(pair(), Rts);  // a new life: the rest of that message is not accepted
  expect_refused(send(Operation::SendMiddle, first() + 1, kPmtu), NakCode::InvalidRdRequest);
  expect_refused(send(Operation::SendLast, first() + 1, 10), NakCode::InvalidRdRequest);
  come(resync(first() + 2));
  EXPECT_EQ(told.size(), 1u);
}

TEST_F(RdResponding, AFirstWithinAMessageIsAnInvalidRequest) {
  post_receive(1), post_receive(2, 1000, 0x12);
  come(send(Operation::SendFirst, first(), kPmtu));
  expect_refused(from(0x902, 0x12, send(Operation::SendFirst, first() + 1, kPmtu)),
                 NakCode::InvalidRequest);
  come(resync(first() + 2));  // the partly used receive is reused for the message
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].qp, 0x11u);
}

TEST_F(RdResponding, MemoryLostDuringAReadCausesANakInsteadOfTheResponse) {
  come(read(first(), 0, 3 * kPmtu));
  ResponsePacket p;
  const EeContext* whose = nullptr;
  EXPECT_TRUE(host().next_response(&p, &whose));
  table.deregister(rkey);
  const Seen s = only_response();
  EXPECT_EQ(s.syndrome(), Syndrome::nak(NakCode::RemoteAccess));
  EXPECT_EQ(s.psn(), (first() + 1).value());
  come(read(first(), 0, 3 * kPmtu));  // a duplicate is never refused
  EXPECT_THAT(responses(), IsEmpty());
}

}  // namespace
}  // namespace urnic::sim
