// The responses of a responder, and their order.
#include "ib/answers.h"

#include "base/buffer_pool.h"
#include "ib/receive_credits.h"
#include "responder_fixture.h"
#include "verbs/shared_receive_queue.h"

namespace urnic::ib {
namespace {

using test::Bytes;
using test::counting;
using test::Response;

struct Answers : test::ResponderFixture {};

Bytes copy(ByteView v) {
  return {v.begin(), v.end()};
}

// proves: IB-32, IB-34
TEST_F(Answers, FollowTheOrderOfTheRequestsIncludingReads) {
  next(read(psn, 0, 3 * kPmtu));
  next(fetch_add(psn, 1024, 5));
  next(read(psn, 512, 10));
  next(write_only(psn, 2048, counting(4)));
  const auto all = responses();
  ASSERT_EQ(all.size(), 6u);
  Psn want = qp.rq_psn;
  for (const Response& r : all) {
    EXPECT_EQ(r.psn, want);
    ++want;
  }
  EXPECT_EQ(want, psn);
  EXPECT_EQ(all[3].operation, Operation::AtomicAcknowledge);
  EXPECT_EQ(all[4].operation, Operation::ReadResponseOnly);
  EXPECT_TRUE(all[5].is_ack());
}

// proves: IB-33
TEST_F(Answers, AnAckNamesTheLastNewRequest) {
  next(write_only(psn, 0, counting(4)));
  const Response one = only_response();
  EXPECT_TRUE(one.is_ack());
  EXPECT_EQ(one.psn, qp.rq_psn);
  for (int i = 0; i < 5; ++i) next(write_only(psn, 0, counting(4)));
  EXPECT_EQ(only_response().psn, qp.rq_psn + 5);
  // Also if the message is not complete yet.
  ParsedPacket first = write(Operation::WriteFirst, psn, 0, 300, counting(kPmtu));
  first.header.bth.ack_request = true;
  next(first);
  EXPECT_EQ(only_response().psn, qp.rq_psn + 6);
}

// proves: IB-34, IB-36
TEST_F(Answers, AReadIsAnsweredByConsecutivePacketsOfTheRightLengths) {
  struct Row {
    std::uint32_t length;
    std::vector<Operation> operations;
  };
  using enum Operation;
  const Row rows[] = {
      {0, {ReadResponseOnly}},
      {1, {ReadResponseOnly}},
      {kPmtu, {ReadResponseOnly}},
      {kPmtu + 1, {ReadResponseFirst, ReadResponseLast}},
      {2 * kPmtu, {ReadResponseFirst, ReadResponseLast}},
      {3 * kPmtu + 7,
       {ReadResponseFirst, ReadResponseMiddle, ReadResponseMiddle, ReadResponseLast}}};
  for (const Row& row : rows) {
    const Psn first = psn;
    ASSERT_EQ(next(read(psn, 100, row.length)), Verdict::Accept);
    EXPECT_EQ(psn, first + static_cast<std::uint32_t>(row.operations.size()));
    EXPECT_EQ(responder().state().expected, psn);
    const auto all = responses();
    ASSERT_EQ(all.size(), row.operations.size());
    Bytes data;
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].operation, row.operations[i]);
      EXPECT_EQ(all[i].psn, first + static_cast<std::uint32_t>(i));
      if (i + 1 < all.size()) {
        EXPECT_EQ(all[i].payload.size(), kPmtu);
      }
      data.insert(data.end(), all[i].payload.begin(), all[i].payload.end());
    }
    EXPECT_EQ(data, copy(written(100, row.length)));
  }
}

// proves: IB-35
TEST_F(Answers, FirstLastAndOnlyHaveAnAethAndMiddleDoesNot) {
  post(1);
  next(read(psn, 0, 3 * kPmtu));
  ResponsePacket p;
  for (const bool says : {true, false, true}) {
    ASSERT_TRUE(responder().next_response(&p));
    EXPECT_EQ(p.header.row().has(kAeth), says);
    if (says) {
      EXPECT_EQ(p.header.aeth.syndrome, Syndrome::ack(1));
      EXPECT_EQ(p.header.aeth.msn, Msn(1));
    }
  }
  next(read(psn, 0, 1));
  const Response only = only_response();
  EXPECT_EQ(only.syndrome, Syndrome::ack(1));
  EXPECT_EQ(only.msn, Msn(2));
}

// proves: IB-37
TEST_F(Answers, ANakReplacesAReadResponseWhoseMemoryIsGone) {
  next(write_only(psn, 0, counting(4)));
  const Psn first = psn;
  next(read(psn, 0, 4 * kPmtu));
  Response r;
  ASSERT_TRUE(response(&r));
  ASSERT_TRUE(response(&r));
  EXPECT_EQ(r.operation, Operation::ReadResponseMiddle);
  table.invalidate(rkey, qp.peer());
  ASSERT_TRUE(response(&r));
  EXPECT_TRUE(r.is_nak(NakCode::RemoteAccess));
  EXPECT_EQ(r.psn, first + 2);
  EXPECT_EQ(r.msn, Msn(1));  // the failed READ does not count
  EXPECT_TRUE(responses().empty());
  EXPECT_TRUE(responder().failed());
  EXPECT_EQ(responder().failure(), Verdict::RemoteAccess);
  EXPECT_FALSE(responder().due());
}

// proves: IB-38
TEST_F(Answers, RequestsAfterAReadAreAcknowledgedAfterItsResponses) {
  post(1);
  const Psn first = psn;
  next(read(psn, 0, 2 * kPmtu));
  next(packet(Operation::SendOnly, psn, counting(5)));
  EXPECT_EQ(completions.size(), 1u);  // it has been executed
  Response r;
  ASSERT_TRUE(response(&r));
  EXPECT_EQ(r.psn, first);
  next(write_only(psn, 0, counting(5)));
  ASSERT_TRUE(response(&r));
  EXPECT_EQ(r.operation, Operation::ReadResponseLast);
  ASSERT_TRUE(response(&r));
  EXPECT_TRUE(r.is_ack());
  EXPECT_EQ(r.psn, first + 3);
  EXPECT_FALSE(response(&r));
}

// proves: IB-39
TEST_F(Answers, AnAtomicIsAnsweredAtItsOwnPsnWithTheOriginalValue) {
  auto* const number = reinterpret_cast<std::uint64_t*>(target() + 64);
  *number = 40;
  next(fetch_add(psn, 64, 2));
  Response r = only_response();
  EXPECT_EQ(r.operation, Operation::AtomicAcknowledge);
  EXPECT_EQ(r.psn, qp.rq_psn);
  EXPECT_EQ(r.original, 40u);
  EXPECT_EQ(r.syndrome.kind(), AckKind::Ack);
  EXPECT_EQ(r.msn, Msn(1));
  EXPECT_EQ(*number, 42u);
  ParsedPacket swap = packet(Operation::CmpSwap, psn);
  swap.header.atomic = {kTarget + 64, rkey, 7, 41};
  next(swap);
  r = only_response();
  EXPECT_EQ(r.psn, qp.rq_psn + 1);
  EXPECT_EQ(r.original, 42u);
  EXPECT_EQ(*number, 42u);  // the value differed
  swap.header.atomic.compare = 42;
  next(swap);
  EXPECT_EQ(only_response().original, 42u);
  EXPECT_EQ(*number, 7u);
}

// proves: IB-40
TEST_F(Answers, EveryRequestForAnAckIsAnswered) {
  ParsedPacket p = write_only(psn, 0, counting(4));
  p.header.bth.ack_request = false;
  next(p);
  EXPECT_FALSE(responder().due());
  EXPECT_TRUE(responses().empty());
  p.header.bth.ack_request = true;
  const Psn asking = psn;
  next(p);
  p.header.bth.ack_request = false;
  next(p);
  EXPECT_TRUE(responder().due());
  EXPECT_TRUE(asking.before(only_response().psn));
  EXPECT_FALSE(responder().due());
  next(read(psn, 0, 1));  // a READ requests a response
  EXPECT_TRUE(responder().due());
}

// proves: IB-41
TEST_F(Answers, OneAckAnswersABurst) {
  verbs::ReceiveQueue many(128, 1, 0);
  queue = &many;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const verbs::Sge sge{i * 8, 8, lkey};
    many.post({i, {&sge, 1}});
    ParsedPacket p = packet(Operation::SendOnly, psn, counting(8));
    p.header.bth.ack_request = i == 99;
    ASSERT_EQ(next(p), Verdict::Accept);
    EXPECT_EQ(responder().due(), i == 99);
  }
  EXPECT_EQ(completions.size(), 100u);
  const Response ack = only_response();
  EXPECT_EQ(ack.psn, qp.rq_psn + 99);
  EXPECT_EQ(ack.msn, Msn(100));
  // Several requests for an ACK are answered by one as well.
  for (int i = 0; i < 10; ++i) next(write_only(psn, 0, counting(4)));
  EXPECT_EQ(only_response().psn, qp.rq_psn + 109);
}

// proves: IB-77
TEST_F(Answers, EveryResponseHasTheMsnThatCountsEachNewMessageOnce) {
  post(1);
  post(2);
  std::uint32_t messages = 0;
  const auto counted = [&](bool ends) {
    messages += ends;
    const auto all = responses();
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.back().msn, Msn(messages));
  };
  ParsedPacket first = packet(Operation::SendFirst, psn, counting(kPmtu));
  first.header.bth.ack_request = true;
  next(first);
  counted(false);
  next(packet(Operation::SendLast, psn, counting(4)));
  counted(true);
  next(write_only(psn, 0, counting(4)));
  counted(true);
  next(write(Operation::WriteOnlyImm, psn, 0, 4, counting(4)));
  counted(true);
  next(read(psn, 0, 2 * kPmtu));
  counted(true);
  next(fetch_add(psn, 0, 1));
  counted(true);
  verdict(write_only(psn - 1, 0, counting(4)));  // a duplicate
  counted(false);
  verdict(write_only(psn + 1, 0, counting(4)));  // out of sequence
  counted(false);
  next(packet(Operation::SendOnly, psn));  // no receive
  counted(false);
}

// proves: IB-77
TEST_F(Answers, TheMsnWrapsAround) {
  ParsedPacket p = write_only(psn, 0, {});
  p.header.bth.ack_request = false;
  for (std::uint32_t i = 0; i < (1u << 24) - 1; ++i) {
    p.header.bth.psn = psn;
    ++psn;
    take(p);
  }
  next(write_only(psn, 0, {}));
  EXPECT_EQ(only_response().msn, Msn(0));
  next(write_only(psn, 0, {}));
  EXPECT_EQ(only_response().msn, Msn(1));
}

// proves: IB-78
TEST_F(Answers, TheMsnCountsAReadByItsLastResponse) {
  next(read(psn, 0, 3 * kPmtu));
  const auto all = responses();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].msn, Msn(1));  // at once, as Linux does
  EXPECT_EQ(all[2].msn, Msn(1));
}

// proves: IB-80
TEST_F(Answers, CreditsCountThePostedReceives) {
  const auto credits = [this] {
    next(write_only(psn, 0, counting(4)));
    return only_response().syndrome;
  };
  EXPECT_EQ(credits(), Syndrome::ack(0));
  for (int i = 0; i < 3; ++i) post(1);
  EXPECT_EQ(credits(), Syndrome::ack(3));
  next(read(psn, 0, 4));
  EXPECT_EQ(only_response().syndrome, Syndrome::ack(3));
  next(fetch_add(psn, 0, 1));
  EXPECT_EQ(only_response().syndrome, Syndrome::ack(3));
  next(packet(Operation::SendOnly, psn, counting(4)));
  EXPECT_EQ(only_response().syndrome, Syndrome::ack(2));
  next(write(Operation::WriteOnlyImm, psn, 0, 4, counting(4)));
  EXPECT_EQ(only_response().syndrome, Syndrome::ack(1));
  for (int i = 0; i < 4; ++i) post(1);
  EXPECT_EQ(credits(), Syndrome::ack(credit_code(5)));
}

// proves: IB-82
TEST_F(Answers, ASharedReceiveQueueAdvertisesNoCredits) {
  verbs::SharedReceiveQueue shared(kPd, 8, 1);
  BufferPool pool;
  verbs::ReceiveQueue mine(&shared, &pool, 0);
  queue = &mine;
  const verbs::Sge sge{0, 100, lkey};
  shared.post({5, {&sge, 1}});
  next(packet(Operation::SendOnly, psn, counting(4)));
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(only_response().syndrome, Syndrome::ack(kNoCredits));
}

TEST_F(Answers, CreditsAreNotAdvertisedIfSwitchedOff) {
  qp.tells_credits = false;
  post(1);
  next(write_only(psn, 0, counting(4)));
  EXPECT_EQ(only_response().syndrome, Syndrome::ack(kNoCredits));
}

TEST_F(Answers, AnUnsolicitedAckRepeatsTheLastPsn) {
  post(1);
  responder().queue_unsolicited_ack();
  Response r = only_response();
  EXPECT_EQ(r.psn, qp.rq_psn - 1);
  EXPECT_EQ(r.syndrome, Syndrome::ack(1));
  next(read(psn, 0, 300));
  responses();
  post(1);
  responder().queue_unsolicited_ack();
  r = only_response();
  EXPECT_TRUE(r.is_ack());
  EXPECT_EQ(r.psn, psn - 1);
  EXPECT_EQ(r.syndrome, Syndrome::ack(2));
  EXPECT_EQ(r.msn, Msn(1));
}

}  // namespace
}  // namespace urnic::ib
