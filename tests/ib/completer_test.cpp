#include "ib/completer.h"

#include <gmock/gmock.h>

#include "ib/requester_bench.h"

namespace urnic::ib {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using verbs::Status;
using verbs::WrOp;

class Completer : public RequesterBench {
 protected:
  void post_sends(int n) {
    for (int i = 0; i < n; ++i) post(WrOp::Send, 1);
  }
  bool filled(std::uint32_t offset, std::uint32_t length, std::uint8_t value) const {
    for (std::uint32_t i = offset; i < offset + length; ++i) {
      if (memory[i] != value) return false;
    }
    return true;
  }
};

// ---- the window

// proves: IB-58
TEST_F(Completer, AcksInTheWindowAreTakenAndOthersNot) {
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
TEST_F(Completer, AGhostBeyondTheHighestDoesNothing) {
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
TEST_F(Completer, ADuplicateAckDoesNothing) {
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
  EXPECT_EQ(data(Operation::ReadResponseOnly, 100, octets_of(1, 1)), Response::Duplicate);
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_EQ(r().due(), due);
}

// proves: IB-126
TEST_F(Completer, WhatLiesHalfTheNumbersBehindTheHighestIsAGhost) {
  qp.sq_psn = Psn(0);
  rules.obey_credits = true;
  post_sends(10);
  leave();
  const std::uint32_t highest = 0;  // one limited Send has left
  EXPECT_EQ(ack(highest - (1u << 23), 0, 4), Response::Ghost);
  EXPECT_EQ(r().state().credits.lsn(), Msn(0));
  EXPECT_EQ(ack(highest - ((1u << 23) - 1), 0, 4), Response::Duplicate);
  EXPECT_EQ(r().state().credits.lsn(), Msn(4));
}

// proves: IB-62
TEST_F(Completer, ARetriedRequestAnsweredFurtherOnCompletesAllBeforeIt) {
  post_sends(5);
  leave();
  pass_until_due();
  EXPECT_THAT(psns(leave(1)), ElementsAre(100));
  EXPECT_EQ(ack(103), Response::Ack);
  EXPECT_THAT(done(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(psns(leave()), ElementsAre(104)) << "what is acknowledged is not sent again";
}

// proves: IB-68
TEST_F(Completer, CompletionsComeInTheOrderOfPosting) {
  post(WrOp::Send, 1);
  post(WrOp::Read, 10, 4096);
  post(WrOp::Write, 1);
  leave();
  EXPECT_THAT(done(), IsEmpty());
  ack(102);
  EXPECT_THAT(done(), ElementsAre(1)) << "nothing passes the READ";
  leave();
  data(Operation::ReadResponseOnly, 101, octets_of(10, 0xcd));
  EXPECT_TRUE(filled(4096, 10, 0xcd)) << "before its completion is reported";
  EXPECT_THAT(done(), ElementsAre(2));
  ack(102);
  EXPECT_THAT(done(), ElementsAre(3));
}

// ---- what is no response

// proves: IB-4
TEST_F(Completer, ReservedSyndromesAreDiscarded) {
  post_sends(1);
  leave();
  for (unsigned octet = 0; octet < 256; ++octet) {
    const bool reserved =
        octet >= 0x80 || (octet >= 0x40 && octet < 0x60) || (octet >= 0x66 && octet < 0x80);
    if (!reserved) continue;
    const Syndrome s{static_cast<std::uint8_t>(octet)};
    EXPECT_EQ(take(acknowledge(100, s, 1)), Response::Malformed) << octet;
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
  const auto more = octets_of(4, 9);
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

TEST_F(Completer, RequestsAreNoResponses) {
  post_sends(1);
  leave();
  EXPECT_EQ(take(response(Operation::SendOnly, 100)), Response::Malformed);
  EXPECT_EQ(take(response(Operation::Resync, 100)), Response::Malformed);
}

TEST_F(Completer, AReadResponseThatIsANakIsNone) {
  post(WrOp::Read, 1);
  leave();
  ParsedPacket p = response(Operation::ReadResponseOnly, 100);
  const auto one = octets_of(1, 1);
  p.payload = one;
  p.header.aeth.syndrome = Syndrome::nak(NakCode::RemoteAccess);
  EXPECT_EQ(take(p), Response::Malformed);
  p.header.aeth.syndrome = Syndrome::rnr_nak(1);
  EXPECT_EQ(take(p), Response::Malformed);
  EXPECT_FALSE(r().failed());
}

// ---- READs and atomics

TEST_F(Completer, AReadsResponsesGoToAllItsPieces) {
  std::array<verbs::Sge, 4> sges;
  const std::array<std::uint32_t, 4> lengths = {300, 0, 7, 461};
  for (std::uint32_t i = 0; i < 4; ++i) {
    sges[i] = {reinterpret_cast<std::uintptr_t>(memory.data()) + 8192 * i, lengths[i], lkey};
  }
  verbs::SendWr wr = request(WrOp::Read, 0);
  wr.sges = sges;
  post(wr);
  leave();
  std::vector<std::uint8_t> all(768);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i % 251);
  const ByteView v = all;
  data(Operation::ReadResponseFirst, 100, v.subspan(0, 256));
  data(Operation::ReadResponseMiddle, 101, v.subspan(256, 256));
  EXPECT_THAT(done(), IsEmpty());
  data(Operation::ReadResponseLast, 102, v.subspan(512, 256));
  EXPECT_THAT(done(), ElementsAre(1));
  std::vector<std::uint8_t> got;
  for (std::uint32_t i = 0; i < 4; ++i) {
    got.insert(got.end(), memory.begin() + 8192 * i, memory.begin() + 8192 * i + lengths[i]);
  }
  EXPECT_EQ(got, all);
}

TEST_F(Completer, AnAtomicsResultIsANumberOfThisMachine) {
  post_atomic(WrOp::CmpSwap, {}, 512);
  leave();
  EXPECT_EQ(result(100, 0x0102030405060708), Response::AtomicResult);
  std::uint64_t got;
  std::memcpy(&got, memory.data() + 512, 8);
  EXPECT_EQ(got, 0x0102030405060708u);
  EXPECT_THAT(done(), ElementsAre(1));
}

TEST_F(Completer, AReadResponseAcknowledgesWhatIsBeforeIt) {
  post_sends(2);
  post(WrOp::Read, 2 * kPmtu, 4096);
  leave();
  EXPECT_EQ(data(Operation::ReadResponseFirst, 102, octets_of(kPmtu, 1)), Response::ReadData);
  EXPECT_THAT(done(), ElementsAre(1, 2));
}

// proves: IB-63
TEST_F(Completer, AnAckBeyondAnUnansweredReadIsAnImpliedNak) {
  post_sends(2);
  post(WrOp::Read, 2 * kPmtu, 4096);
  post_sends(1);
  leave();
  EXPECT_EQ(ack(104), Response::ImpliedNak);
  EXPECT_THAT(done(), ElementsAre(1, 2)) << "those before the READ alone";
  const auto again = leave();
  EXPECT_THAT(operations(again), ElementsAre(Operation::ReadRequest, Operation::SendOnly));
  EXPECT_THAT(psns(again), ElementsAre(102, 104));
  EXPECT_EQ(r().state().retries.retries_left(), 6);
  EXPECT_EQ(ack(104), Response::ImpliedNak);
  EXPECT_THAT(leave(), IsEmpty()) << "one repetition at a time";
  EXPECT_EQ(r().state().retries.retries_left(), 6);
}

// proves: IB-63
TEST_F(Completer, AnAckOnAReadsOwnPsnIsAnImpliedNakAsWell) {
  post_sends(1);
  post(WrOp::Read, 1, 4096);
  leave();
  EXPECT_EQ(ack(101), Response::ImpliedNak);
  EXPECT_THAT(done(), ElementsAre(1));
  EXPECT_THAT(operations(leave()), ElementsAre(Operation::ReadRequest));
}

// proves: IB-63
TEST_F(Completer, ALaterResponseIsAnImpliedNakOfAnEarlierAtomic) {
  post_atomic(WrOp::FetchAdd, {}, 0);
  post(WrOp::Read, 1, 4096);
  post_atomic(WrOp::FetchAdd, {}, 64);
  leave();
  EXPECT_EQ(data(Operation::ReadResponseOnly, 101, octets_of(1, 0xaa)), Response::ImpliedNak);
  EXPECT_FALSE(filled(4096, 1, 0xaa));
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101, 102));
  result(100, 1);
  EXPECT_EQ(result(102, 1), Response::ImpliedNak);
  EXPECT_THAT(psns(leave()), ElementsAre(101, 102));
}

// proves: IB-64
TEST_F(Completer, AHoleInAReadsResponsesIsAskedForAgainFromThereOn) {
  post(WrOp::Read, 5 * kPmtu, 4096);
  post(WrOp::Send, 1);
  leave();
  data(Operation::ReadResponseFirst, 100, octets_of(kPmtu, 1));
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 102, octets_of(kPmtu, 0xbb)), Response::ImpliedNak);
  const auto again = leave();
  ASSERT_THAT(operations(again), ElementsAre(Operation::ReadRequest, Operation::SendOnly));
  EXPECT_EQ(again[0].psn(), 101u);
  EXPECT_EQ(again[0].h.reth.address, 0x10000u + kPmtu);
  EXPECT_EQ(again[0].h.reth.length, 4 * kPmtu);
  EXPECT_EQ(again[1].psn(), 105u);
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 103, octets_of(kPmtu, 0xbb)), Response::ImpliedNak);
  EXPECT_THAT(leave(), IsEmpty()) << "what was on its way behind the hole adds nothing";
  EXPECT_EQ(data(Operation::ReadResponseFirst, 101, octets_of(kPmtu, 2)), Response::ReadData);
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 102, octets_of(kPmtu, 3)), Response::ReadData);
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 103, octets_of(kPmtu, 4)), Response::ReadData);
  EXPECT_EQ(data(Operation::ReadResponseLast, 104, octets_of(kPmtu, 5)), Response::ReadData);
  EXPECT_THAT(done(), ElementsAre(1));
  for (std::uint8_t k = 0; k < 5; ++k) EXPECT_TRUE(filled(4096 + k * kPmtu, kPmtu, k + 1)) << k;
}

// proves: IB-64
TEST_F(Completer, TheRestMayBeAnsweredByItsFirstOrByTheMiddleItAlwaysWas) {
  post(WrOp::Read, 3 * kPmtu, 4096);
  leave();
  data(Operation::ReadResponseFirst, 100, octets_of(kPmtu, 1));
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(101));
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 101, octets_of(kPmtu, 2)), Response::ReadData);
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(102));
  EXPECT_EQ(data(Operation::ReadResponseOnly, 102, octets_of(kPmtu, 3)), Response::ReadData);
  EXPECT_THAT(done(), ElementsAre(1));
}

// proves: IB-64
TEST_F(Completer, WhenAllOfTheRestIsLostTheTimerAsksForIt) {
  post(WrOp::Read, 3 * kPmtu, 4096);
  leave();
  data(Operation::ReadResponseFirst, 100, octets_of(kPmtu, 1));
  pass_until_due();
  const auto again = leave();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].psn(), 101u);
  EXPECT_EQ(again[0].h.reth.length, 2 * kPmtu);
}

// ---- answers that do not belong to the question

TEST_F(Completer, AReadResponseForASendIsBad) {
  post_sends(3);
  leave();
  EXPECT_EQ(data(Operation::ReadResponseOnly, 101, octets_of(1, 1)), Response::Bad);
  EXPECT_TRUE(r().failed());
  EXPECT_THAT(statuses(), ElementsAre(Status::Success, Status::BadResponse, Status::Flushed));
}

TEST_F(Completer, AnAtomicsResultForAReadIsBad) {
  post(WrOp::Read, 8, 4096);
  leave();
  EXPECT_EQ(result(100, 1), Response::Bad);
  EXPECT_THAT(statuses(), ElementsAre(Status::BadResponse));
}

TEST_F(Completer, AReadResponseForAnAtomicIsBad) {
  post_atomic(WrOp::FetchAdd, {}, 4096);
  leave();
  EXPECT_EQ(data(Operation::ReadResponseOnly, 100, octets_of(8, 1)), Response::Bad);
  EXPECT_THAT(statuses(), ElementsAre(Status::BadResponse));
}

TEST_F(Completer, ReadResponsesOfWrongLengthOrPlaceAreBad) {
  struct Row {
    std::uint32_t read;  // octets; the first response is tried
    Operation o;
    std::uint32_t length;
  };
  using O = Operation;
  constexpr Row kRows[] = {
      {2 * kPmtu, O::ReadResponseFirst, kPmtu - 4},
      {2 * kPmtu, O::ReadResponseMiddle, kPmtu},
      {2 * kPmtu, O::ReadResponseLast, kPmtu},
      {2 * kPmtu, O::ReadResponseOnly, kPmtu},
      {10, O::ReadResponseOnly, 9},
      {10, O::ReadResponseOnly, 11},
      {10, O::ReadResponseLast, 10},
      {kPmtu, O::ReadResponseFirst, kPmtu},
      {0, O::ReadResponseOnly, 1},
      {10, O::ReadResponseOnly, 0},
      {2 * kPmtu, O::ReadResponseFirst, kPmtu + 4},
  };
  for (const Row& row : kRows) {
    verbs::SendQueue queue(4, 4, 0, sizeof(SendPart));
    Requester other(qp, rules, &queue, &table);
    ASSERT_EQ(queue.post(request(WrOp::Read, row.read, 4096)), verbs::Post::Ok);
    RequestPacket sent;
    ASSERT_TRUE(other.next_packet(now, true, &sent));
    const auto payload = octets_of(row.length, 0xcc);
    ParsedPacket p = response(row.o, 100);
    p.header.aeth.syndrome = Syndrome::ack(kNoCredits);
    p.payload = payload;
    EXPECT_EQ(other.take(p, now).what, Response::Bad) << row.read << " " << row.length;
    EXPECT_TRUE(other.failed());
    EXPECT_FALSE(filled(4096, 8, 0xcc));
  }
}

TEST_F(Completer, AFirstInTheMiddleThatNobodyAskedForIsBad) {
  post(WrOp::Read, 3 * kPmtu, 4096);
  leave();
  data(Operation::ReadResponseFirst, 100, octets_of(kPmtu, 1));
  EXPECT_EQ(data(Operation::ReadResponseFirst, 101, octets_of(kPmtu, 1)), Response::Bad);
}

TEST_F(Completer, WhatMayNotBeFilledFailsItsRead) {
  const std::uint32_t key = table.register_memory(kPd, memory.data(), 4096, verbs::kLocalWrite);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), 8, key};
  verbs::SendWr wr = request(WrOp::Read, 0);
  wr.sges = {&sge, 1};
  post(wr);
  leave();
  ASSERT_TRUE(table.deregister(key));
  data(Operation::ReadResponseOnly, 100, octets_of(8, 0xdd));
  EXPECT_FALSE(filled(0, 8, 0xdd));
  EXPECT_THAT(statuses(), ElementsAre(Status::LocalProtection));
}

// ---- NAKs

// proves: IB-65
TEST_F(Completer, ANakAcknowledgesWhatIsBeforeIt) {
  post_sends(4);
  leave();
  EXPECT_EQ(nak(102, NakCode::SequenceError), Response::SequenceNak);
  EXPECT_THAT(done(), ElementsAre(1, 2));
  EXPECT_THAT(psns(leave()), ElementsAre(102, 103));
  EXPECT_EQ(nak(103, NakCode::RemoteOperational), Response::Refused);
  EXPECT_THAT(statuses(), ElementsAre(Status::Success, Status::RemoteOperation));
}

// proves: IB-66
TEST_F(Completer, NaksThatAreNotRepeatedEndTheQueue) {
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
TEST_F(Completer, ARefusalBehindAnUnansweredReadIsTold) {
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
  data(Operation::ReadResponseFirst, 100, octets_of(kPmtu, 1));
  EXPECT_EQ(nak(101, NakCode::RemoteOperational), Response::Refused);
  EXPECT_THAT(statuses(), ElementsAre(Status::RemoteOperation));
}

// proves: IB-67
TEST_F(Completer, OperationInProgressReloadsTheTimerAndRepeatsNothing) {
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
  // A repeated answer to something older, which knows more.
  EXPECT_EQ(ack(99, 3), Response::Duplicate);
  EXPECT_THAT(done(), ElementsAre(1, 2, 3));
  EXPECT_EQ(ack(99, 5), Response::Duplicate) << "of what has not been sent";
  EXPECT_THAT(done(), IsEmpty());
}

// proves: IB-77
TEST_F(Completer, TheMsnWraps) {
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
TEST_F(Completer, AReadsMsnMayComeWithItsFirstResponse) {
  post(WrOp::Read, 2 * kPmtu, 4096);
  leave();
  EXPECT_EQ(data(Operation::ReadResponseFirst, 100, octets_of(kPmtu, 1), 1), Response::ReadData);
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_EQ(data(Operation::ReadResponseLast, 101, octets_of(kPmtu, 2), 1), Response::ReadData);
  EXPECT_THAT(done(), ElementsAre(1));
  EXPECT_EQ(r().counters().duplicates + r().counters().ghosts, 0u);
}

// proves: IB-79
TEST_F(Completer, CompletionByMsnStopsAtAnUnansweredRead) {
  post_sends(2);
  post(WrOp::Read, 2 * kPmtu, 4096);
  post_sends(1);
  leave();
  data(Operation::ReadResponseFirst, 102, octets_of(kPmtu, 1), 4);
  EXPECT_THAT(done(), ElementsAre(1, 2));
  data(Operation::ReadResponseLast, 103, octets_of(kPmtu, 1), 4);
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

TEST_F(Completer, AMessageThatHasNotLeftWhollyIsNotCompletedByAnMsn) {
  rules.window = 2;
  post(WrOp::Send, 3 * kPmtu);
  leave();
  ack(99, 1);
  EXPECT_THAT(done(), IsEmpty());
}

}  // namespace
}  // namespace urnic::ib
