#include "ib/completer.h"

#include <gmock/gmock.h>

#include "ib/completer_bench.h"

namespace urnic::ib {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using verbs::Status;
using verbs::WrOp;

// ---- the window

// proves: IB-58
TEST_F(Completer, OnlyAcksInTheWindowAreAccepted) {
  post_sends(3);
  leave();
  EXPECT_EQ(ack(103), Response::Ghost) << "one beyond the highest";
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_EQ(ack(99), Response::Duplicate) << "one before the oldest";
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_EQ(ack(100), Response::Ack);
  EXPECT_THAT(done(), ElementsAre(1));
  EXPECT_EQ(ack(102), Response::Ack);
  EXPECT_THAT(done(), ElementsAre(2, 3));
}

// proves: IB-59
TEST_F(Completer, AGhostAckBeyondTheHighestPsnHasNoEffect) {
  post_sends(2);
  leave();
  const Instant due = r().due();
  now = now + Duration::us(100);
  for (const std::uint32_t ahead : {2u, 3u, 1000u, (1u << 23) - 1}) {
    EXPECT_EQ(ack(100 + ahead, 2), Response::Ghost) << ahead;
  }
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_EQ(r().due(), due);
  EXPECT_EQ(r().counters().ghosts, 4u);
}

// proves: IB-60
TEST_F(Completer, ADuplicateAckHasNoEffect) {
  post_sends(2);
  leave();
  ack(100);
  done();
  const Instant due = r().due();
  now = now + Duration::us(100);
  EXPECT_EQ(ack(100), Response::Duplicate);
  EXPECT_EQ(nak(100, NakCode::SequenceError), Response::Duplicate);
  EXPECT_EQ(nak(100, NakCode::RemoteAccess), Response::Duplicate);
  EXPECT_EQ(rnr(100, 1), Response::Duplicate);
  EXPECT_EQ(result(100, 7), Response::Duplicate);
  EXPECT_EQ(data(Operation::ReadResponseOnly, 100, bytes_of(1, 1)), Response::Duplicate);
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_EQ(r().due(), due);
}

// proves: IB-126
TEST_F(Completer, AnAckHalfThePsnSpaceBeforeTheHighestIsAGhost) {
  qp.sq_psn = Psn(0);
  rules.obey_credits = true;
  post_sends(10);
  leave();
  const std::uint32_t highest = 0;  // one limited Send has been sent
  EXPECT_EQ(ack(highest - (1u << 23), 0, 4), Response::Ghost);
  EXPECT_EQ(r().state().credits.lsn(), Msn(0));
  EXPECT_EQ(ack(highest - ((1u << 23) - 1), 0, 4), Response::Duplicate);
  EXPECT_EQ(r().state().credits.lsn(), Msn(4));
}

// proves: IB-62
TEST_F(Completer, AnAckPastARepeatedRequestCompletesEverythingBeforeIt) {
  post_sends(5);
  leave();
  pass_until_due();
  EXPECT_THAT(psns(leave(1)), ElementsAre(100));
  EXPECT_EQ(ack(103), Response::Ack);
  EXPECT_THAT(done(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(psns(leave()), ElementsAre(104)) << "what is acknowledged is not sent again";
}

// proves: IB-68
TEST_F(Completer, CompletionsFollowTheOrderOfPosting) {
  post(WrOp::Send, 1);
  post(WrOp::Read, 10, 4096);
  post(WrOp::Write, 1);
  leave();
  EXPECT_THAT(done(), IsEmpty());
  ack(102);
  EXPECT_THAT(done(), ElementsAre(1)) << "nothing passes the READ";
  leave();
  data(Operation::ReadResponseOnly, 101, bytes_of(10, 0xcd));
  EXPECT_TRUE(filled(4096, 10, 0xcd)) << "before its completion is reported";
  EXPECT_THAT(done(), ElementsAre(2));
  ack(102);
  EXPECT_THAT(done(), ElementsAre(3));
}

// ---- invalid responses

// proves: IB-4
TEST_F(Completer, ReservedSyndromesAreDiscarded) {
  post_sends(1);
  leave();
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool reserved =
        byte >= 0x80 || (byte >= 0x40 && byte < 0x60) || (byte >= 0x66 && byte < 0x80);
    if (!reserved) continue;
    const Syndrome s{static_cast<std::uint8_t>(byte)};
    EXPECT_EQ(take(acknowledge(100, s, 1)), Response::Malformed) << byte;
  }
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_FALSE(r().failed());
}

// proves: IB-124
TEST_F(Completer, AnAcknowledgeWithPayloadIsDropped) {
  post_sends(1);
  post_atomic(WrOp::FetchAdd, {}, 0);
  leave();
  const auto more = bytes_of(4, 9);
  ParsedPacket p = acknowledge(100, Syndrome::ack(kNoCredits), 1);
  p.payload = more;
  EXPECT_EQ(take(p), Response::Malformed);
  p.payload = {};
  p.header.bth.pad = 2;
  EXPECT_EQ(take(p), Response::Malformed);
  p = response(Operation::AtomicAcknowledge, 101);
  p.header.aeth.syndrome = Syndrome::ack(kNoCredits);
  p.payload = more;
  EXPECT_EQ(take(p), Response::Malformed);
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_EQ(r().counters().malformed, 3u);
}

TEST_F(Completer, ARequestIsDiscardedAsAResponse) {
  post_sends(1);
  leave();
  EXPECT_EQ(take(response(Operation::SendOnly, 100)), Response::Malformed);
  EXPECT_EQ(take(response(Operation::Resync, 100)), Response::Malformed);
}

TEST_F(Completer, AReadResponseWithANakSyndromeIsDiscarded) {
  post(WrOp::Read, 1);
  leave();
  ParsedPacket p = response(Operation::ReadResponseOnly, 100);
  const auto one = bytes_of(1, 1);
  p.payload = one;
  p.header.aeth.syndrome = Syndrome::nak(NakCode::RemoteAccess);
  EXPECT_EQ(take(p), Response::Malformed);
  p.header.aeth.syndrome = Syndrome::rnr_nak(1);
  EXPECT_EQ(take(p), Response::Malformed);
  EXPECT_FALSE(r().failed());
}

// ---- NAKs

// proves: IB-65
TEST_F(Completer, ANakAcknowledgesEverythingBeforeIt) {
  post_sends(4);
  leave();
  EXPECT_EQ(nak(102, NakCode::SequenceError), Response::SequenceNak);
  EXPECT_THAT(done(), ElementsAre(1, 2));
  EXPECT_THAT(psns(leave()), ElementsAre(102, 103));
  EXPECT_EQ(nak(103, NakCode::RemoteOperational), Response::Refused);
  EXPECT_THAT(statuses(), ElementsAre(Status::Success, Status::RemoteOperation));
}

// proves: IB-66
TEST_F(Completer, FatalNaksFailTheSendQueue) {
  struct Row {
    NakCode code;
    Status status;
  };
  for (const Row row : {Row{NakCode::InvalidRequest, Status::RemoteInvalidRequest},
                        Row{NakCode::RemoteAccess, Status::RemoteAccess},
                        Row{NakCode::RemoteOperational, Status::RemoteOperation}}) {
    verbs::SendQueue queue(8, 4, 0, sizeof(SendPart));
    Requester other(qp, rules, &queue, &table);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(queue.post(request(WrOp::Write, 1)), verbs::Post::Ok);
    }
    RequestPacket sent;
    while (other.next_packet(now, true, &sent)) {
    }
    EXPECT_EQ(other.take(acknowledge(101, Syndrome::nak(row.code), 0), now).what,
              Response::Refused);
    EXPECT_TRUE(other.failed());
    EXPECT_FALSE(other.next_packet(now, true, &sent));
    EXPECT_TRUE(other.due().is_never());
    ASSERT_EQ(queue.post(request(WrOp::Write, 1)), verbs::Post::Ok);
    std::vector<Status> got;
    other.flush([&got](const verbs::Completion& c) { got.push_back(c.status); });
    EXPECT_THAT(got, ElementsAre(Status::Success, row.status, Status::Flushed, Status::Flushed));
    EXPECT_EQ(other.take(acknowledge(102, Syndrome::ack(1), 0), now).what, Response::Ghost);
  }
}

// proves: IB-66
TEST_F(Completer, AFatalNakAfterAnUnansweredReadIsReported) {
  post(WrOp::Read, 1, 4096);
  post(WrOp::Write, 1);
  leave();
  nak(101, NakCode::RemoteAccess);
  EXPECT_THAT(statuses(), ElementsAre(Status::Flushed, Status::RemoteAccess));
}

// proves: IB-66
TEST_F(Completer, ANakInPlaceOfAReadsResponseEndsTheRead) {
  post(WrOp::Read, 3 * kPmtu, 4096);
  leave();
  data(Operation::ReadResponseFirst, 100, bytes_of(kPmtu, 1));
  EXPECT_EQ(nak(101, NakCode::RemoteOperational), Response::Refused);
  EXPECT_THAT(statuses(), ElementsAre(Status::RemoteOperation));
}

// proves: IB-67
TEST_F(Completer, OperationInProgressRestartsTheTimerAndRepeatsNothing) {
  post_sends(2);
  leave();
  now = now + Duration::ms(3);
  EXPECT_EQ(nak(101, NakCode::OperationInProgress), Response::InProgress);
  EXPECT_THAT(done(), ElementsAre(1));
  EXPECT_EQ(r().due(), now + ack_timeout(10));
  now = now + Duration::ms(3);
  nak(101, NakCode::OperationInProgress);
  EXPECT_EQ(r().due(), now + ack_timeout(10)) << "also when nothing is acknowledged by it";
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_EQ(r().state().retries.retries_left(), 7);
}

// ---- MSN

// proves: IB-77
TEST_F(Completer, TheMsnNamesTheNewestCompletedRequest) {
  post_sends(4);
  leave();
  // A duplicate response to an older request, with a newer MSN.
  EXPECT_EQ(ack(99, 3), Response::Duplicate);
  EXPECT_THAT(done(), ElementsAre(1, 2, 3));
  EXPECT_EQ(ack(99, 5), Response::Duplicate) << "of what has not been sent";
  EXPECT_THAT(done(), IsEmpty());
}

// proves: IB-77
TEST_F(Completer, TheMsnWrapsAround) {
  const std::uint32_t kAll = 1u << 24;
  qp.ack_timeout = 0;
  for (std::uint32_t i = 0; i < kAll - 2; i += 64) {
    const std::uint32_t n = std::min(64u, kAll - 2 - i);
    for (std::uint32_t k = 0; k < n; ++k) post(request(WrOp::Write, 0));
    RequestPacket p;
    while (r().next_packet(now, true, &p)) {
    }
    r().take(acknowledge(p.header.bth.psn.value(), Syndrome::ack(kNoCredits), i + n), now);
    r().report([](const verbs::Completion&) {});
  }
  post_sends(4);  // SSN 2^24 - 1, 0, 1, 2
  leave();
  EXPECT_EQ(ack(97, 1), Response::Duplicate);
  EXPECT_THAT(done(), SizeIs(3));
  EXPECT_EQ(ack(97, 2), Response::Duplicate);
  EXPECT_THAT(done(), SizeIs(1));
}

// proves: IB-78, IB-149
TEST_F(Completer, AReadsFirstResponseMayHaveItsMsn) {
  post(WrOp::Read, 2 * kPmtu, 4096);
  leave();
  EXPECT_EQ(data(Operation::ReadResponseFirst, 100, bytes_of(kPmtu, 1), 1), Response::ReadData);
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_EQ(data(Operation::ReadResponseLast, 101, bytes_of(kPmtu, 2), 1), Response::ReadData);
  EXPECT_THAT(done(), ElementsAre(1));
  EXPECT_EQ(r().counters().duplicates + r().counters().ghosts, 0u);
}

// proves: IB-79
TEST_F(Completer, CompletionByMsnStopsAtAnUnansweredRead) {
  post_sends(2);
  post(WrOp::Read, 2 * kPmtu, 4096);
  post_sends(1);
  leave();
  data(Operation::ReadResponseFirst, 102, bytes_of(kPmtu, 1), 4);
  EXPECT_THAT(done(), ElementsAre(1, 2));
  data(Operation::ReadResponseLast, 103, bytes_of(kPmtu, 1), 4);
  EXPECT_THAT(done(), ElementsAre(3, 4));
}

// proves: IB-79
TEST_F(Completer, CompletionByMsnStopsAtAnUnansweredAtomic) {
  post_atomic(WrOp::FetchAdd, {}, 0);
  post_sends(1);
  leave();
  EXPECT_EQ(ack(99, 2), Response::Duplicate);
  EXPECT_THAT(done(), IsEmpty());
}

TEST_F(Completer, AnMsnDoesNotCompleteAPartlySentMessage) {
  rules.window = 2;
  post(WrOp::Send, 3 * kPmtu);
  leave();
  ack(99, 1);
  EXPECT_THAT(done(), IsEmpty());
}

}  // namespace
}  // namespace urnic::ib