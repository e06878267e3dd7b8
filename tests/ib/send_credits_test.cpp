#include "ib/send_credits.h"

#include <gmock/gmock.h>

#include "ib/requester_bench.h"

namespace urnic::ib {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using verbs::WrOp;

TEST(CreditCodes, AreThoseOfTheTable) {
  constexpr std::uint32_t kCredits[31] = {
      0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
      256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};
  for (std::uint8_t code = 0; code < kNoCredits; ++code) {
    EXPECT_EQ(credits_of(code), kCredits[code]) << int{code};
  }
}

class Credits : public RequesterBench {
 protected:
  Credits() { rules.obey_credits = true; }
  void post_sends(int n, std::uint32_t length = 1) {
    for (int i = 0; i < n; ++i) post(WrOp::Send, length);
  }
};

// proves: IB-61
TEST_F(Credits, ADuplicateAckBringsCreditsAndMsn) {
  post_sends(6);
  EXPECT_THAT(leave(), SizeIs(1));
  ack(100, 1, 1);
  EXPECT_THAT(psns(leave()), ElementsAre(101, 102)) << "LSN is 2";
  EXPECT_EQ(ack(100, 1, 3), Response::Duplicate);
  EXPECT_THAT(psns(leave()), ElementsAre(103, 104)) << "LSN is 4";
  EXPECT_EQ(ack(100, 3, 3), Response::Duplicate);
  EXPECT_THAT(done(), ElementsAre(1, 2, 3));
  EXPECT_THAT(psns(leave()), ElementsAre(105));
}

// proves: IB-83
TEST_F(Credits, NothingBeyondTheLsnIsSentFreely) {
  post_sends(1);
  leave();
  ack(100, 1, 4);  // 4 credits: LSN 5
  post_sends(10);
  const auto sent = leave();
  EXPECT_THAT(psns(sent), ElementsAre(101, 102, 103, 104, 105)) << "the last one as limited";
  ack(101, 2, 4);
  EXPECT_THAT(psns(leave()), ElementsAre(106)) << "LSN 6 covers it, and one more is tried";
}

// proves: IB-84
TEST_F(Credits, ALimitedSendSendsOnePacketWithAckRequest) {
  post_sends(1, 5 * kPmtu);
  const auto sent = leave();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].operation(), Operation::SendFirst);
  EXPECT_TRUE(sent[0].ask());
  ack(99, 0, 0);
  EXPECT_THAT(leave(), IsEmpty()) << "an unsolicited ACK without credits answers nothing";
  ack(100, 0, 0);
  EXPECT_THAT(psns(leave()), ElementsAre(101, 102, 103, 104)) << "the receive is its own now";
}

// proves: IB-85
TEST_F(Credits, ALimitedWriteWithImmediateIsSentWholeWithAckRequest) {
  post(WrOp::WriteImm, 3 * kPmtu);
  post(WrOp::Send, 1);
  const auto sent = leave();
  ASSERT_THAT(operations(sent),
              ElementsAre(Operation::WriteFirst, Operation::WriteMiddle, Operation::WriteLastImm));
  EXPECT_TRUE(sent[2].ask());
  EXPECT_THAT(leave(), IsEmpty());
  ack(101, 0, 0);
  EXPECT_THAT(leave(), IsEmpty()) << "its last packet must be answered";
  ack(102, 1, 0);
  EXPECT_THAT(operations(leave()), ElementsAre(Operation::SendOnly));
}

// proves: IB-86
TEST_F(Credits, ARequestWithoutAReceiveIsNotHeldBackAndRaisesTheLsn) {
  post_sends(1);
  leave();
  ack(100, 1, 1);  // LSN 2
  post(WrOp::Write, 2 * kPmtu);
  post(WrOp::Read, 1, 4096);
  post_atomic(WrOp::FetchAdd, {}, 0);
  post_sends(1);
  EXPECT_THAT(leave(), SizeIs(5));
  EXPECT_EQ(r().state().credits.lsn(), Msn(5)) << "it covered the Send, which had SSN 5";
  EXPECT_TRUE(r().state().credits.covers(Msn(5)));
  ack(102, 1, 1);
  EXPECT_EQ(r().state().credits.lsn(), Msn(2)) << "computed anew, it may go back";
}

// proves: IB-86
TEST_F(Credits, ALimitedWriteGoesOut) {
  ack(99, 0, 2);
  post_sends(2);
  leave();
  ack(99, 0, 0);  // LSN is 0
  post(WrOp::Write, 2 * kPmtu);
  post(WrOp::Write, 1);
  EXPECT_THAT(leave(), SizeIs(3));
}

// proves: IB-87
TEST_F(Credits, TheUnsolicitedAckBeforeTheFirstRequestBringsCredits) {
  qp.sq_psn = Psn(0);
  EXPECT_EQ(ack(0xffffff, 0, 4), Response::Duplicate);
  post_sends(6);
  EXPECT_THAT(psns(leave()), ElementsAre(0, 1, 2, 3, 4)) << "four, and a limited one";
}

// proves: IB-88
TEST_F(Credits, WithoutUnsolicitedCreditsTheFirstSendIsLimitedAndAllAreSent) {
  post_sends(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_THAT(psns(leave()), ElementsAre(100 + i));
    ack(100 + i, i + 1, 0);  // never any credits
  }
  EXPECT_THAT(done(), ElementsAre(1, 2, 3, 4));
}

// proves: IB-89
TEST_F(Credits, UnsolicitedAcksAtAnyTimeAreHarmless) {
  ack(99, 0, 2);
  post(WrOp::Read, 2 * kPmtu, 4096);
  ack(99, 0, 2);
  leave();
  const Instant expected = r().due();
  now = now + Duration::us(100);
  ack(99, 0, 2);
  EXPECT_EQ(r().due(), expected);
  data(Operation::ReadResponseFirst, 100, bytes_of(kPmtu, 1));
  ack(99, 0, 2);
  data(Operation::ReadResponseLast, 101, bytes_of(kPmtu, 1), 1);
  ack(101, 1, 2);
  EXPECT_THAT(done(), ElementsAre(1));
  post_sends(1);
  leave();
  rnr(102, 20);
  const Instant due = r().due();
  ack(101, 1, 2);
  EXPECT_EQ(r().due(), due);
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_EQ(r().counters().duplicates, 6u);
  EXPECT_FALSE(r().failed());
}

// proves: IB-90
TEST_F(Credits, RepetitionNeedsNoCredits) {
  ack(99, 0, 4);
  post_sends(4);
  EXPECT_THAT(leave(), SizeIs(4));
  ack(99, 0, 0);  // the credits are revoked
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101, 102, 103));
}

// proves: IB-127
TEST_F(Credits, ThePacketOfALimitedSendIsRepeatedAndUsesARetry) {
  qp.retry_count = 3;
  post_sends(1, 2 * kPmtu);
  EXPECT_THAT(psns(leave()), ElementsAre(100));
  for (int i = 0; i < 3; ++i) {
    pass_until_due();
    EXPECT_EQ(r().state().retries.retries_left(), 2 - i);
    const auto again = leave();
    ASSERT_THAT(psns(again), ElementsAre(100));
    EXPECT_TRUE(again[0].ask());
  }
  pass_until_due();
  EXPECT_TRUE(r().failed());
}

TEST_F(Credits, Code31RemovesTheLimitForever) {
  post_sends(50);
  leave();
  ack(100, 1, kNoCredits);
  EXPECT_THAT(leave(), SizeIs(49));
  ack(149, 50, 0);
  post_sends(5);
  EXPECT_THAT(leave(), SizeIs(5)) << "for ever";
}

TEST_F(Credits, AnOlderAckThatArrivesLateIsIgnored) {
  ack(99, 0, 6);
  post_sends(4);
  leave();
  ack(103, 4, 2);
  EXPECT_EQ(r().state().credits.lsn(), Msn(6));
  EXPECT_EQ(ack(100, 1, 1), Response::Duplicate);
  EXPECT_EQ(r().state().credits.lsn(), Msn(6));
}

TEST_F(Credits, SwitchedOffCreditsAreNotNeeded) {
  rules.obey_credits = false;
  post_sends(20);
  EXPECT_THAT(leave(), SizeIs(20));
}

}  // namespace
}  // namespace urnic::ib
