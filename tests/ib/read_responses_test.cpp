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

// ---- READs and atomics

TEST_F(Completer, ReadResponsesFillAllSgesOfTheRead) {
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

TEST_F(Completer, AnAtomicResultIsStoredInHostByteOrder) {
  post_atomic(WrOp::CmpSwap, {}, 512);
  leave();
  EXPECT_EQ(result(100, 0x0102030405060708), Response::AtomicResult);
  std::uint64_t got;
  std::memcpy(&got, memory.data() + 512, 8);
  EXPECT_EQ(got, 0x0102030405060708u);
  EXPECT_THAT(done(), ElementsAre(1));
}

TEST_F(Completer, AReadResponseAcknowledgesEverythingBeforeIt) {
  post_sends(2);
  post(WrOp::Read, 2 * kPmtu, 4096);
  leave();
  EXPECT_EQ(data(Operation::ReadResponseFirst, 102, bytes_of(kPmtu, 1)), Response::ReadData);
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
TEST_F(Completer, AnAckAtTheReadsOwnPsnIsAnImpliedNakToo) {
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
  EXPECT_EQ(data(Operation::ReadResponseOnly, 101, bytes_of(1, 0xaa)), Response::ImpliedNak);
  EXPECT_FALSE(filled(4096, 1, 0xaa));
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101, 102));
  result(100, 1);
  EXPECT_EQ(result(102, 1), Response::ImpliedNak);
  EXPECT_THAT(psns(leave()), ElementsAre(101, 102));
}

// proves: IB-64
TEST_F(Completer, AHoleInReadResponsesIsRequestedAgainFromThere) {
  post(WrOp::Read, 5 * kPmtu, 4096);
  post(WrOp::Send, 1);
  leave();
  data(Operation::ReadResponseFirst, 100, bytes_of(kPmtu, 1));
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 102, bytes_of(kPmtu, 0xbb)), Response::ImpliedNak);
  const auto again = leave();
  ASSERT_THAT(operations(again), ElementsAre(Operation::ReadRequest, Operation::SendOnly));
  EXPECT_EQ(again[0].psn(), 101u);
  EXPECT_EQ(again[0].h.reth.address, 0x10000u + kPmtu);
  EXPECT_EQ(again[0].h.reth.length, 4 * kPmtu);
  EXPECT_EQ(again[1].psn(), 105u);
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 103, bytes_of(kPmtu, 0xbb)), Response::ImpliedNak);
  EXPECT_THAT(leave(), IsEmpty()) << "what was on its way behind the hole adds nothing";
  EXPECT_EQ(data(Operation::ReadResponseFirst, 101, bytes_of(kPmtu, 2)), Response::ReadData);
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 102, bytes_of(kPmtu, 3)), Response::ReadData);
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 103, bytes_of(kPmtu, 4)), Response::ReadData);
  EXPECT_EQ(data(Operation::ReadResponseLast, 104, bytes_of(kPmtu, 5)), Response::ReadData);
  EXPECT_THAT(done(), ElementsAre(1));
  for (std::uint8_t k = 0; k < 5; ++k) EXPECT_TRUE(filled(4096 + k * kPmtu, kPmtu, k + 1)) << k;
}

// proves: IB-64
TEST_F(Completer, TheRestOfAReadMayBeginWithAFirstOrAMiddle) {
  post(WrOp::Read, 3 * kPmtu, 4096);
  leave();
  data(Operation::ReadResponseFirst, 100, bytes_of(kPmtu, 1));
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(101));
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 101, bytes_of(kPmtu, 2)), Response::ReadData);
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(102));
  EXPECT_EQ(data(Operation::ReadResponseOnly, 102, bytes_of(kPmtu, 3)), Response::ReadData);
  EXPECT_THAT(done(), ElementsAre(1));
}

// proves: IB-64
TEST_F(Completer, TheTransportTimerRequestsALostRestOfARead) {
  post(WrOp::Read, 3 * kPmtu, 4096);
  leave();
  data(Operation::ReadResponseFirst, 100, bytes_of(kPmtu, 1));
  pass_until_due();
  const auto again = leave();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].psn(), 101u);
  EXPECT_EQ(again[0].h.reth.length, 2 * kPmtu);
}

// ---- responses that do not match the request

TEST_F(Completer, AReadResponseToASendFailsTheSend) {
  post_sends(3);
  leave();
  EXPECT_EQ(data(Operation::ReadResponseOnly, 101, bytes_of(1, 1)), Response::Bad);
  EXPECT_TRUE(r().failed());
  EXPECT_THAT(statuses(), ElementsAre(Status::Success, Status::BadResponse, Status::Flushed));
}

TEST_F(Completer, AnAtomicResultForAReadFailsTheRead) {
  post(WrOp::Read, 8, 4096);
  leave();
  EXPECT_EQ(result(100, 1), Response::Bad);
  EXPECT_THAT(statuses(), ElementsAre(Status::BadResponse));
}

TEST_F(Completer, AReadResponseToAnAtomicFailsTheAtomic) {
  post_atomic(WrOp::FetchAdd, {}, 4096);
  leave();
  EXPECT_EQ(data(Operation::ReadResponseOnly, 100, bytes_of(8, 1)), Response::Bad);
  EXPECT_THAT(statuses(), ElementsAre(Status::BadResponse));
}

TEST_F(Completer, AReadResponseOfWrongLengthOrPlaceFailsTheRead) {
  struct Row {
    std::uint32_t read;  // bytes; its first response is tried
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
    const auto payload = bytes_of(row.length, 0xcc);
    ParsedPacket p = response(row.o, 100);
    p.header.aeth.syndrome = Syndrome::ack(kNoCredits);
    p.payload = payload;
    EXPECT_EQ(other.take(p, now).what, Response::Bad) << row.read << " " << row.length;
    EXPECT_TRUE(other.failed());
    EXPECT_FALSE(filled(4096, 8, 0xcc));
  }
}

TEST_F(Completer, AFirstInTheMiddleOfAReadFailsItUnlessRequestedThere) {
  post(WrOp::Read, 3 * kPmtu, 4096);
  leave();
  data(Operation::ReadResponseFirst, 100, bytes_of(kPmtu, 1));
  EXPECT_EQ(data(Operation::ReadResponseFirst, 101, bytes_of(kPmtu, 1)), Response::Bad);
}

TEST_F(Completer, AReadWhoseSinkIsNotWritableFails) {
  const std::uint32_t key = table.register_memory(kPd, memory.data(), 4096, verbs::kLocalWrite);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), 8, key};
  verbs::SendWr wr = request(WrOp::Read, 0);
  wr.sges = {&sge, 1};
  post(wr);
  leave();
  ASSERT_TRUE(table.deregister(key));
  data(Operation::ReadResponseOnly, 100, bytes_of(8, 0xdd));
  EXPECT_FALSE(filled(0, 8, 0xdd));
  EXPECT_THAT(statuses(), ElementsAre(Status::LocalProtection));
}

}  // namespace
}  // namespace urnic::ib
