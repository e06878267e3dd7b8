// RESYNC: what the sender announces, and how the other end handles it.
#include "sim/rd/resync.h"

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
using verbs::WrOp;

struct Resyncing : RdBench {
  // The RESYNC after a refusal of queue pair 0x11's message at PSN `at`.
  Seen resync_after_refusal(std::uint32_t at) {
    come(nak(at, NakCode::RemoteAccess));
    Seen s = only_request();
    EXPECT_EQ(s.operation(), Operation::Resync);
    return s;
  }
};

// ---- the requester

// The first example of the specification: request packets 4, 5, 6 lead to RESYNC 7.
// proves: IB-174
TEST_F(Resyncing, ThePsnFollowsTheHighestOfTheMessage_o9_35a1) {
  ee.sq_psn = Psn(4);
  post(WrOp::Send, 3 * kPmtu);
  EXPECT_EQ(requests().size(), 3u);
  EXPECT_EQ(resync_after_refusal(5).psn(), 7u);
  come(ack(7));
  post(WrOp::Send, 1, 0x12);
  EXPECT_EQ(only_request().psn(), 8u);
}

// The second example: a READ at 24 with five responses leads to RESYNC 29.
// proves: IB-174
TEST_F(Resyncing, ExpectedReadResponsesCountAsUsedPsns_o9_35a1) {
  ee.sq_psn = Psn(24);
  post(WrOp::Read, 5 * kPmtu);
  EXPECT_EQ(only_request().psn(), 24u);
  come(answer(Operation::ReadResponseFirst, 24, Syndrome::ack(0), Bytes(kPmtu, 1)));
  EXPECT_EQ(resync_after_refusal(25).psn(), 29u);
  come(ack(29));
  post(WrOp::Send, 1, 0x12);
  EXPECT_EQ(only_request().psn(), 30u);
}

// proves: IB-174
TEST_F(Resyncing, RetransmittedAndUnsentPacketsUseNoFurtherPsns_o9_35a1) {
  ee.sq_psn = Psn(0xfffffe);
  ee.rules.window = 2;
  post(WrOp::Send, 4 * kPmtu);
  EXPECT_EQ(requests().size(), 2u);
  wait();
  EXPECT_EQ(requests().size(), 2u);  // retransmitted
  EXPECT_EQ(resync_after_refusal(0xfffffe).psn(), 0u);
}

// proves: IB-174
TEST_F(Resyncing, TheQueuePairsAreThoseOfTheMessage_o9_35a2) {
  post(WrOp::Write, 10, 0x12);
  requests();
  ParsedPacket p = nak(100, NakCode::InvalidRequest);
  p.header.bth.dest_qp = 0x12;
  come(p);
  const Seen s = only_request();
  EXPECT_EQ(s.operation(), Operation::Resync);
  EXPECT_EQ(s.h.bth.dest_qp, kPeerQp);
  EXPECT_EQ(s.h.deth.source_qp, 0x12u);
  EXPECT_EQ(s.h.deth.qkey, kQkey);
  EXPECT_EQ(s.h.ee_context, kPeerEe);
}

// proves: IB-176
TEST_F(Resyncing, ALostResyncIsResentAndWithoutAnAnswerTheEeContextFails) {
  ee.retry_count = 2;
  post(WrOp::Send, 10, 0x11, 1);
  post(WrOp::Send, 10, 0x12, 2);
  requests();
  resync_after_refusal(100);
  for (int i = 0; i < 2; ++i) {
    wait();
    EXPECT_EQ(only_request().psn(), 101u);
  }
  EXPECT_EQ(asks().counters().resyncs, 1u);
  EXPECT_EQ(asks().counters().resyncs_again, 2u);
  wait();
  EXPECT_EQ(context().state, QpState::Error);
  EXPECT_THAT(requests(), IsEmpty());
  // Each request has completed once.
  EXPECT_THAT(statuses(), ElementsAre(Status::RemoteAccess, Status::LocalOperation));
}

// proves: IB-176, IB-177
TEST_F(Resyncing, WithoutAnAnswerASuspendedMessageFailsOnce) {
  ee.rules.on_rnr = OnRnr::Suspend;
  ee.retry_count = 0;
  post(WrOp::Send, 10, 0x11, 1);
  requests();
  come(rnr(100));
  requests();
  wait();
  EXPECT_EQ(context().state, QpState::Error);
  EXPECT_EQ(pair().state, QpState::Sqe);
  EXPECT_THAT(requests(), IsEmpty());
  EXPECT_THAT(statuses(), ElementsAre(Status::RetryExceeded));
}

// Late answers to the message do not answer its RESYNC.
// proves: IB-174
TEST_F(Resyncing, OnlyAnAckOfItsPsnAnswersIt) {
  post(WrOp::Send, 2 * kPmtu, 0x11);
  post(WrOp::Send, 1, 0x12);
  requests();
  resync_after_refusal(100);
  come(ack(100));
  come(ack(101));
  come(ack(103));
  come(nak(102, NakCode::SequenceError));
  EXPECT_TRUE(asks().resyncing());
  EXPECT_THAT(requests(), IsEmpty());
  come(ack(102));
  EXPECT_EQ(only_request().psn(), 103u);
}

// A queue pair is moved to Error while its message is in progress: afterwards both ends still agree
// for the others.
// proves: IB-176
TEST_F(Resyncing, AQueuePairMovedToErrorCausesAResync) {
  post(WrOp::Send, 10, 0x11, 1);
  post(WrOp::Send, 10, 0x12, 2);
  requests();
  EXPECT_TRUE(host().modify(pair(), QpState::Error, verbs::kQpAttrState).ok());
  EXPECT_THAT(statuses(), ElementsAre(Status::Flushed));
  EXPECT_EQ(only_request().operation(), Operation::Resync);
  come(ack(101));
  EXPECT_EQ(only_request().h.deth.source_qp, 0x12u);
}

// Otherwise late packets of the message could arrive after later messages of the queue pair over
// another path.
// proves: IB-176
TEST_F(Resyncing, TheQueuePairSendsNothingElseBeforeItIsAnswered) {
  post(WrOp::Send, 10, 0x11);
  requests();
  come(nak(100, NakCode::RemoteAccess));
  EXPECT_TRUE(host().modify(pair(), QpState::Rts, verbs::kQpAttrState).ok());
  post(WrOp::Send, 10, 0x11, 2, kOtherEe);
  EXPECT_EQ(only_request().operation(), Operation::Resync);
  come(ack(101));
  EXPECT_EQ(only_request().h.ee_context, 0x61u);
}

// ---- the responder

// proves: IB-175
TEST_F(Resyncing, AtOrAfterTheExpectedPsnItSetsTheExpectedPsn_o9_38a2) {
  for (const std::uint32_t ahead : {0u, 1u, 5u, kPsnWindow}) {
    again();
    const Psn at = ee.rq_psn + ahead;
    come(resync(at));
    const Seen s = only_response();
    EXPECT_EQ(s.operation(), Operation::Acknowledge);
    EXPECT_EQ(s.syndrome(), Syndrome::ack(0));
    EXPECT_EQ(s.psn(), at.value());
    EXPECT_EQ(s.h.bth.dest_qp, kPeerQp);
    EXPECT_EQ(serves().expected(), at + 1);
  }
}

// proves: IB-175
TEST_F(Resyncing, BeforeTheExpectedPsnItIsOnlyAnswered_o9_38a2) {
  post_receive(1);
  come(send(Operation::SendFirst, ee.rq_psn, kPmtu));
  for (const std::uint32_t back : {1u, 5u, kPsnWindow - 1}) {
    come(resync(ee.rq_psn + 1 - back));
    EXPECT_EQ(only_response().psn(), (ee.rq_psn + 1 - back).value());
  }
  EXPECT_EQ(serves().expected(), ee.rq_psn + 1);
  EXPECT_TRUE(serves().in_message());
  EXPECT_THAT(told, IsEmpty());
}

// proves: IB-175
TEST_F(Resyncing, APartlyUsedReceiveFailsAndTheNextMessageUsesTheNext_o9_38a2) {
  post_receive(1), post_receive(2);
  come(send(Operation::SendFirst, ee.rq_psn, kPmtu));
  come(resync(ee.rq_psn + 3));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].c.receive);
  EXPECT_EQ(told[0].c.wr_id, 1u);
  EXPECT_NE(told[0].c.status, Status::Success);
  EXPECT_EQ(pair().state, QpState::Rts);
  EXPECT_EQ(serves().counters().aborted, 1u);
  come(resync(ee.rq_psn + 3));  // only once
  EXPECT_EQ(told.size(), 1u);
  ParsedPacket p = send(Operation::SendOnly, ee.rq_psn + 4, 10);
  p.header.deth.source_qp = 0x902;
  come(p);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[1].c.wr_id, 2u);
  EXPECT_EQ(told[1].c.status, Status::Success);
}

// proves: IB-175
TEST_F(Resyncing, ItIsAcceptedFromAnyQueuePairWithinAnyMessage_o9_38a2) {
  post_receive(1), post_receive(2);
  come(send(Operation::SendFirst, ee.rq_psn, kPmtu));
  ParsedPacket p = resync(ee.rq_psn + 1);
  p.header.deth.source_qp = 0x999;
  p.header.bth.dest_qp = 0x998;
  come(p);
  EXPECT_EQ(serves().expected(), ee.rq_psn + 2);
  EXPECT_EQ(only_response().h.bth.dest_qp, 0x999u);
  EXPECT_EQ(told.size(), 1u);
}

// A WRITE that was given up has used no receive.
// proves: IB-175
TEST_F(Resyncing, APartialWriteUsesNoReceive) {
  post_receive(1);
  come(write(Operation::WriteFirst, ee.rq_psn, 0, 2 * kPmtu, Bytes(kPmtu, 1)));
  come(resync(ee.rq_psn + 1));
  EXPECT_THAT(told, IsEmpty());
  come(send(Operation::SendOnly, ee.rq_psn + 2, 10));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].c.status, Status::Success);
}

// Retransmitted packets of an abandoned message belong to no message.
// proves: IB-175
TEST_F(Resyncing, LatePacketsOfTheMessageAreIgnored) {
  post_receive(1), post_receive(2);
  come(send(Operation::SendFirst, ee.rq_psn, kPmtu));
  come(resync(ee.rq_psn + 2));
  responses();
  come(send(Operation::SendLast, ee.rq_psn + 1, 10));
  come(send(Operation::SendFirst, ee.rq_psn, kPmtu));
  EXPECT_THAT(responses(), IsEmpty());
  EXPECT_EQ(told.size(), 1u);
  EXPECT_EQ(serves().counters().ignored, 2u);
}

// proves: IB-175
TEST_F(Resyncing, AnswersToAReadThatWasGivenUpStop) {
  come(read(ee.rq_psn, 0, 4 * kPmtu));
  ResponsePacket p;
  const EeContext* whose = nullptr;
  EXPECT_TRUE(host().next_response(&p, &whose));
  come(resync(ee.rq_psn + 4));
  EXPECT_EQ(only_response().psn(), (ee.rq_psn + 4).value());
}

}  // namespace
}  // namespace urnic::sim
