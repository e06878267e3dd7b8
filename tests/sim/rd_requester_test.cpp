// Outgoing packets of an EE context, and the effect of answers.
#include "sim/rd/rd_requester.h"

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

struct RdRequesting : RdBench {
  ParsedPacket to(std::uint32_t qpn, ParsedPacket p) {
    p.header.bth.dest_qp = qpn;
    return p;
  }
  ParsedPacket data(Operation o, std::uint32_t psn, std::size_t bytes, std::uint8_t fill) {
    return answer(o, psn, Syndrome::ack(0), Bytes(bytes, fill));
  }
  std::vector<std::uint32_t> psns() {
    std::vector<std::uint32_t> all;
    for (const Seen& s : requests()) all.push_back(s.psn());
    return all;
  }
};

// ---- packets

// proves: IB-170
TEST_F(RdRequesting, RequestsNameTheEeContextAndBothQueuePairs) {
  post(WrOp::SendImm, 10);
  const Seen s = only_request();
  EXPECT_EQ(s.operation(), Operation::SendOnlyImm);
  EXPECT_EQ(s.h.ee_context, kPeerEe);
  EXPECT_EQ(s.h.bth.dest_qp, kPeerQp);
  EXPECT_EQ(s.h.deth.source_qp, 0x11u);
  EXPECT_EQ(s.h.deth.qkey, kQkey);
  EXPECT_EQ(s.h.immediate, 0x55667788u);
  EXPECT_EQ(s.psn(), 100u);
  EXPECT_TRUE(s.h.bth.ack_request);
  EXPECT_EQ(s.payload, Bytes(memory.begin(), memory.begin() + 10));
}

// proves: IB-170
TEST_F(RdRequesting, AQkeyWithTheTopBitSetIsThatOfTheQueuePair) {
  post(WrOp::Send, 10, 0x11, 1, kEe, 0x80000000);
  EXPECT_EQ(only_request().h.deth.qkey, kQkey);
}

// PSNs belong to the EE context: they continue from one queue pair to the next.
// proves: IB-173
TEST_F(RdRequesting, AtMostOneMessageIsInProgress) {
  post(WrOp::Send, 600, 0x11, 1);
  post(WrOp::Send, 10, 0x11, 2);
  post(WrOp::Send, 10, 0x12, 3);
  EXPECT_THAT(psns(), ElementsAre(100, 101, 102));
  come(ack(101));
  EXPECT_THAT(requests(), IsEmpty());
  come(ack(102));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
  const Seen s = only_request();  // round robin
  EXPECT_EQ(s.h.deth.source_qp, 0x12u);
  EXPECT_EQ(s.psn(), 103u);
}

// The same holds for one queue pair over two EE contexts.
// proves: IB-173
TEST_F(RdRequesting, ASendQueueHasOneMessageInProgressOverAllEeContexts) {
  post(WrOp::Send, 10, 0x11, 1, kEe);
  post(WrOp::Send, 10, 0x11, 2, kOtherEe);
  EXPECT_EQ(only_request().h.deth.source_qp, 0x11u);
  post(WrOp::Send, 10, 0x12, 3, kOtherEe);
  EXPECT_EQ(only_request().h.deth.source_qp, 0x12u);
}

// proves: IB-173
TEST_F(RdRequesting, TheWindowBoundsAMessageAndItsLastPacketAsks) {
  ee.rules.window = 4;
  ee.rules.ack_every = 2;
  post(WrOp::Write, 10 * kPmtu);
  const auto first = requests();
  ASSERT_EQ(first.size(), 4u);
  EXPECT_FALSE(first[0].h.bth.ack_request);
  EXPECT_TRUE(first[1].h.bth.ack_request);
  EXPECT_TRUE(first[3].h.bth.ack_request);
  EXPECT_EQ(first[0].operation(), Operation::WriteFirst);
  EXPECT_EQ(first[0].h.reth.length, 10 * kPmtu);
  come(ack(101));
  EXPECT_THAT(psns(), ElementsAre(104, 105));
  come(ack(105));
  EXPECT_THAT(psns(), ElementsAre(106, 107, 108, 109));
  come(ack(109));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
}

// ---- requests that cannot begin

// proves: IB-178
TEST_F(RdRequesting, ARequestOverAnotherDomainFailsLikeAnUnansweredOne_o9_34) {
  host();
  add(0x21, kRdd + 1);
  post(WrOp::Send, 10, 0x21);
  EXPECT_THAT(requests(), IsEmpty());
  EXPECT_THAT(statuses(), ElementsAre(Status::RetryExceeded));
  EXPECT_EQ(pair(0x21).state, QpState::Sqe);
  post(WrOp::Send, 10, 0x11);  // no PSN was used
  EXPECT_EQ(only_request().psn(), 100u);
}

// proves: IB-176
TEST_F(RdRequesting, UnreadableAndUnsupportedRequestsFailWithoutAPacket) {
  bad_lkey = true;
  post(WrOp::Send, 10, 0x11);
  bad_lkey = false;
  post(WrOp::SendInv, 10, 0x12);
  EXPECT_THAT(requests(), IsEmpty());
  EXPECT_EQ(pair(0x11).state, QpState::Sqe);
  EXPECT_EQ(pair(0x12).state, QpState::Sqe);
  EXPECT_THAT(statuses(),
              ::testing::UnorderedElementsAre(Status::LocalProtection, Status::LocalOperation));
}

// ---- loss

// proves: IB-176
TEST_F(RdRequesting, ASequenceNakCausesOneRetransmissionFromItsPsn) {
  post(WrOp::Send, 4 * kPmtu);
  EXPECT_EQ(requests().size(), 4u);
  come(nak(102, NakCode::SequenceError));
  come(nak(102, NakCode::SequenceError));
  EXPECT_THAT(psns(), ElementsAre(102, 103));
  EXPECT_EQ(asks().counters().naks, 1u);
  come(ack(103));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
}

// proves: IB-176
TEST_F(RdRequesting, ATimeoutRetransmitsUpToTheRetryCount) {
  ee.retry_count = 3;
  post(WrOp::Send, 10);
  EXPECT_THAT(psns(), ElementsAre(100));
  for (int i = 0; i < 3; ++i) {
    wait();
    EXPECT_THAT(psns(), ElementsAre(100)) << i;
  }
  wait();
  EXPECT_THAT(statuses(), ElementsAre(Status::RetryExceeded));
  EXPECT_EQ(pair().state, QpState::Sqe);
}

TEST_F(RdRequesting, ProgressReloadsTheRetries) {
  ee.retry_count = 1;
  ee.rules.window = 1;
  post(WrOp::Send, 3 * kPmtu);
  for (std::uint32_t at = 100; at < 103; ++at) {
    EXPECT_THAT(psns(), ElementsAre(at));
    wait();
    EXPECT_THAT(psns(), ElementsAre(at));
    come(ack(at));
  }
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
}

TEST_F(RdRequesting, OperationInProgressReloadsTheTimerAndNothingElse) {
  post(WrOp::Send, 10);
  requests();
  const Instant before = host().due();
  now = now + Duration::ms(1);
  come(nak(100, NakCode::OperationInProgress));
  EXPECT_EQ(host().due() - before, Duration::ms(1));
  EXPECT_THAT(requests(), IsEmpty());
}

TEST_F(RdRequesting, AnswersToOtherMessagesAreIgnored) {
  post(WrOp::Send, 2 * kPmtu);
  requests();
  come(to(0x12, ack(101)));                                   // from another queue pair
  come(ack(102));                                             // for a packet not sent yet
  come(ack(99));                                              // old
  come(answer(Operation::Acknowledge, 101, Syndrome{0x40}));  // reserved
  come(answer(Operation::Acknowledge, 101, Syndrome::ack(0), {1, 2, 3, 4}));  // too long
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(asks().counters().strangers, 3u);
  EXPECT_EQ(asks().counters().malformed, 2u);
  come(ack(101));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
}

// ---- READ and atomic

TEST_F(RdRequesting, AReadIsRepeatedFromItsFirstHole) {
  post(WrOp::Read, 3 * kPmtu);
  const Seen s = only_request();
  EXPECT_EQ(s.h.reth.length, 3 * kPmtu);
  come(data(Operation::ReadResponseFirst, 100, kPmtu, 0xa0));
  come(data(Operation::ReadResponseLast, 102, kPmtu, 0xa2));
  const Seen again = only_request();
  EXPECT_EQ(again.psn(), 101u);
  EXPECT_EQ(again.h.reth.address, 0x2000u + kPmtu);
  EXPECT_EQ(again.h.reth.length, 2 * kPmtu);
  come(data(Operation::ReadResponseFirst, 101, kPmtu, 0xa1));
  EXPECT_THAT(told, IsEmpty());
  come(data(Operation::ReadResponseLast, 102, kPmtu, 0xa2));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
  EXPECT_EQ(memory[0], 0xa0);
  EXPECT_EQ(memory[kPmtu], 0xa1);
  EXPECT_EQ(memory[2 * kPmtu], 0xa2);
  post(WrOp::Send, 1, 0x12);
  EXPECT_EQ(only_request().psn(), 103u);
}

TEST_F(RdRequesting, AnAtomicReturnsTheOldValue) {
  post(WrOp::FetchAdd, 8);
  EXPECT_EQ(only_request().h.atomic.swap_or_add, 3u);
  come(ack(100));  // an implied NAK: the response was lost
  EXPECT_EQ(only_request().psn(), 100u);
  ParsedPacket p = answer(Operation::AtomicAcknowledge, 100);
  p.header.original = 0x0102030405060708;
  come(p);
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
  std::uint64_t was;
  std::memcpy(&was, memory.data(), 8);
  EXPECT_EQ(was, 0x0102030405060708u);
}

TEST_F(RdRequesting, AResponseOfTheWrongKindAbandonsTheMessage) {
  post(WrOp::Send, 10);
  requests();
  come(data(Operation::ReadResponseOnly, 100, 10, 1));
  EXPECT_THAT(statuses(), ElementsAre(Status::BadResponse));
  EXPECT_EQ(only_request().operation(), Operation::Resync);
}

// ---- the three reactions to a NAK

// proves: IB-176
TEST_F(RdRequesting, ARefusedMessageStopsOnlyItsOwnQueuePair) {
  const std::pair<NakCode, Status> all[] = {{NakCode::InvalidRequest, Status::RemoteInvalidRequest},
                                            {NakCode::RemoteAccess, Status::RemoteAccess},
                                            {NakCode::RemoteOperational, Status::RemoteOperation},
                                            {NakCode::InvalidRdRequest, Status::RemoteInvalidRd}};
  for (const auto& [code, status] : all) {
    again();
    post(WrOp::Write, 10, 0x11, 1);
    post(WrOp::Write, 10, 0x11, 2);
    post(WrOp::Send, 10, 0x12, 3);
    requests();
    come(nak(100, code));
    EXPECT_THAT(statuses(), ElementsAre(status, Status::Flushed));
    EXPECT_THAT(moved, ElementsAre(std::pair(0x11u, QpState::Sqe)));
    EXPECT_EQ(context().state, QpState::Rts);
    EXPECT_EQ(only_request().operation(), Operation::Resync);  // the others wait for its answer
    come(ack(101));
    const Seen next = only_request();
    EXPECT_EQ(next.h.deth.source_qp, 0x12u);
    EXPECT_EQ(next.psn(), 102u);
  }
}

// proves: IB-176
TEST_F(RdRequesting, WithGiveUpErrorQueuePairAndEeContextEnterError) {
  ee.rules.give_up = GiveUp::Error;
  post_receive(1);
  post(WrOp::Write, 10, 0x11, 1);
  post(WrOp::Send, 10, 0x12, 2);
  requests();
  come(nak(100, NakCode::RemoteAccess));
  EXPECT_EQ(context().state, QpState::Error);
  EXPECT_EQ(pair(0x11).state, QpState::Error);
  ASSERT_EQ(statuses(), (std::vector{Status::RemoteAccess, Status::Flushed}));
  EXPECT_TRUE(told[1].c.receive);
  EXPECT_THAT(requests(), IsEmpty());  // 0x12 names an EE context in Error
  EXPECT_EQ(pair(0x12).state, QpState::Sqe);
}

// ---- RNR

// proves: IB-177
TEST_F(RdRequesting, AfterAnRnrNakTheSameMessageIsResentLater) {
  post(WrOp::Send, 10, 0x11, 1);
  post(WrOp::Send, 10, 0x12, 2);
  requests();
  const Instant then = now;
  come(rnr(100));
  EXPECT_EQ(host().due() - then, Duration::us(640));
  now = then + Duration::us(639);
  host().on_time(now);
  EXPECT_THAT(requests(), IsEmpty());  // the other queue pair waits too
  wait();
  const Seen s = only_request();
  EXPECT_EQ(s.psn(), 100u);
  EXPECT_EQ(s.h.deth.source_qp, 0x11u);
}

// proves: IB-177
TEST_F(RdRequesting, RnrRetriesEndAtTheRnrRetryCount) {
  ee.rnr_retry = 2;
  post(WrOp::Send, 10);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(requests().size(), 1u);
    come(rnr(100));
    EXPECT_THAT(told, IsEmpty());
    wait();
  }
  requests();
  come(rnr(100));
  EXPECT_THAT(statuses(), ElementsAre(Status::RnrRetryExceeded));
  EXPECT_EQ(pair().state, QpState::Sqe);
}

// proves: IB-177
TEST_F(RdRequesting, WithSuspendTheMessageIsDeferredAndOthersGoFirst) {
  ee.rules.on_rnr = OnRnr::Suspend;
  post(WrOp::Send, 10, 0x11, 1);
  post(WrOp::Send, 10, 0x12, 2);
  requests();
  come(rnr(100));
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(pair().state, QpState::Rts);
  EXPECT_EQ(only_request().operation(), Operation::Resync);
  come(ack(101));
  EXPECT_EQ(only_request().h.deth.source_qp, 0x12u);
  come(to(0x12, ack(102)));
  EXPECT_THAT(requests(), IsEmpty());
  wait();
  const Seen s = only_request();
  EXPECT_EQ(s.h.deth.source_qp, 0x11u);
  EXPECT_EQ(s.psn(), 103u);
  come(ack(103));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success, Status::Success));
}

// A second copy of the refused message may have found a receive: the MSN in the answer to the
// RESYNC shows that.
// proves: IB-177, IB-179
TEST_F(RdRequesting, AMessageThatArrivedAfterAllCompletesAndIsNotDeferred) {
  ee.rules.on_rnr = OnRnr::Suspend;
  post(WrOp::Send, 10, 0x11, 1);
  requests();
  come(rnr(100));
  requests();
  peer_msn = Msn(1);
  come(ack(101));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
  EXPECT_THAT(requests(), IsEmpty());
  // The next message counts from there.
  post(WrOp::Send, 10, 0x11, 2);
  EXPECT_EQ(only_request().psn(), 102u);
  come(rnr(102));
  requests();
  come(ack(103));
  EXPECT_EQ(told.size(), 1u);
  wait();
  EXPECT_EQ(only_request().psn(), 104u);
}

// proves: IB-177
TEST_F(RdRequesting, AMessageIsDeferredUpToTheRnrRetryCount) {
  ee.rules.on_rnr = OnRnr::Suspend;
  ee.rnr_retry = 1;
  post(WrOp::Send, 10);
  requests();
  come(rnr(100));
  requests();
  come(ack(101));
  wait();
  EXPECT_EQ(only_request().psn(), 102u);
  come(rnr(102));
  EXPECT_THAT(statuses(), ElementsAre(Status::RnrRetryExceeded));
}

// proves: IB-177
TEST_F(RdRequesting, WithAbandonAnRnrNakFailsTheMessageAtOnce) {
  ee.rules.on_rnr = OnRnr::Abandon;
  ee.rules.give_up = GiveUp::Error;
  post(WrOp::Send, 10);
  requests();
  come(rnr(100));
  EXPECT_THAT(statuses(), ElementsAre(Status::RnrRetryExceeded));
  EXPECT_EQ(pair().state, QpState::Sqe);
  EXPECT_EQ(context().state, QpState::Rts);
  EXPECT_EQ(only_request().operation(), Operation::Resync);
}

// proves: IB-177
TEST_F(RdRequesting, WithOnRnrErrorTheEeContextEntersError) {
  ee.rules.on_rnr = OnRnr::Error;
  post(WrOp::Send, 10);
  requests();
  come(rnr(100));
  EXPECT_THAT(statuses(), ElementsAre(Status::RnrRetryExceeded));
  EXPECT_EQ(pair().state, QpState::Error);
  EXPECT_EQ(context().state, QpState::Error);
}

}  // namespace
}  // namespace urnic::sim
