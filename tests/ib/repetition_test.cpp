// When a requester resends, how often, and when it gives up.
#include <gmock/gmock.h>

#include "ib/requester.h"
#include "ib/requester_bench.h"

namespace urnic::ib {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using verbs::Status;
using verbs::WrOp;

class Repetition : public RequesterBench {
 protected:
  void post_sends(int n) {
    for (int i = 0; i < n; ++i) post(WrOp::Send, 1);
  }
};

// ---- the transport timer

// proves: IB-69
TEST_F(Repetition, TheTimerStartsWithAPacketThatRequestsAnAck) {
  rules.window = 100;
  post(WrOp::Write, 3 * kPmtu);
  EXPECT_TRUE(r().due().is_never());
  EXPECT_THAT(leave(2), SizeIs(2));
  EXPECT_TRUE(r().due().is_never()) << "nothing asked for an ACK";
  now = now + Duration::us(50);
  leave(1);
  EXPECT_EQ(r().due(), now + ack_timeout(10));
  const Instant due = r().due();
  now = now + Duration::us(50);
  post_sends(1);
  leave();
  EXPECT_EQ(r().due(), due) << "it is one for the queue and runs already";
}

// proves: IB-69
TEST_F(Repetition, ReadsAndAtomicsStartTheTimer) {
  post(WrOp::Read, 10, 4096);
  leave();
  EXPECT_EQ(r().due(), now + ack_timeout(10));
  data(Operation::ReadResponseOnly, 100, bytes_of(10, 1));
  EXPECT_TRUE(r().due().is_never());
  post_atomic(WrOp::FetchAdd, {}, 0);
  leave();
  EXPECT_EQ(r().due(), now + ack_timeout(10));
}

// proves: IB-69
TEST_F(Repetition, AnAckRestartsTheTimerAndTheLastStopsIt) {
  post_sends(3);
  leave();
  now = now + Duration::ms(3);
  ack(100);
  EXPECT_EQ(r().due(), now + ack_timeout(10));
  now = now + Duration::ms(3);
  ack(102);
  EXPECT_TRUE(r().due().is_never());
}

// proves: IB-69
TEST_F(Repetition, PacketsWithoutAckRequestDoNotKeepTheTimerRunning) {
  rules.ack_every = 2;
  post(WrOp::Write, 10 * kPmtu);
  leave(3);  // the second one requests an ACK
  ack(101);
  EXPECT_TRUE(r().due().is_never()) << "the third did not ask";
}

// proves: IB-70
TEST_F(Repetition, WithoutATimerNothingIsRepeated) {
  qp.ack_timeout = 0;
  post_sends(1);
  leave();
  EXPECT_TRUE(r().due().is_never());
  pass(Duration::s(1000));
  EXPECT_THAT(leave(), IsEmpty());
}

// proves: IB-71
TEST_F(Repetition, ADeadPeerIsRetriedAsOftenAsTheRetryCount) {
  for (std::uint8_t n = 0; n < 7; ++n) {
    verbs::SendQueue queue(8, 4, 0, sizeof(SendPart));
    QpAttributes attributes = qp;
    attributes.retry_count = n;
    Requester other(attributes, rules, &queue, &table);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(queue.post(request(WrOp::Send, 1)), verbs::Post::Ok);
    int first_packet_sent = 0;
    RequestPacket p;
    for (int round = 0; round < 20 && !other.failed(); ++round) {
      while (other.next_packet(now, true, &p)) first_packet_sent += p.header.bth.psn == qp.sq_psn;
      ASSERT_FALSE(other.due().is_never());
      now = other.due();
      other.on_time(now);
    }
    EXPECT_TRUE(other.failed());
    EXPECT_EQ(other.counters().retries_exhausted, 1u);
    EXPECT_EQ(other.counters().rnr_retries_exhausted, 0u);
    EXPECT_EQ(first_packet_sent, 1 + n);
    std::vector<Status> got;
    other.flush([&got](const verbs::Completion& c) { got.push_back(c.status); });
    EXPECT_THAT(got, ElementsAre(Status::RetryExceeded, Status::Flushed));
  }
}

// proves: IB-74
TEST_F(Repetition, ARetryCountOfSevenMeansSevenRepetitions) {
  qp.retry_count = 7;
  post_sends(1);
  leave();
  for (int i = 0; i < 7; ++i) {
    pass_until_due();
    EXPECT_THAT(psns(leave()), ElementsAre(100)) << i;
  }
  pass_until_due();
  EXPECT_TRUE(r().failed());
  EXPECT_THAT(statuses(), ElementsAre(Status::RetryExceeded));
}

// proves: IB-148
TEST_F(Repetition, SevenRetriesEndEvenIfThePeerKeepsRespondingWithoutProgress) {
  post_sends(2);
  leave();
  for (int i = 0; i < 7; ++i) {
    pass_until_due();
    leave();
    ack(99);  // a duplicate
  }
  pass_until_due();
  EXPECT_TRUE(r().failed());
}

// proves: IB-72
TEST_F(Repetition, ASequenceNakTakesOneRetryAndProgressReloads) {
  qp.retry_count = 2;
  post_sends(6);
  leave();
  nak(101, NakCode::SequenceError);
  EXPECT_EQ(r().state().retries.retries_left(), 1);
  EXPECT_THAT(psns(leave()), ElementsAre(101, 102, 103, 104, 105));
  pass_until_due();
  EXPECT_EQ(r().state().retries.retries_left(), 0);
  leave();
  ack(102);
  EXPECT_EQ(r().state().retries.retries_left(), 2);
  nak(103, NakCode::SequenceError);
  leave();
  EXPECT_EQ(r().state().retries.retries_left(), 1);
}

// proves: IB-72
TEST_F(Repetition, SequenceNaksWithoutProgressRunOut) {
  qp.retry_count = 1;
  post_sends(2);
  leave();
  nak(100, NakCode::SequenceError);
  leave();
  pass_until_due();
  EXPECT_TRUE(r().failed());
  EXPECT_THAT(statuses(), ElementsAre(Status::RetryExceeded, Status::Flushed));
}

TEST_F(Repetition, ASecondSequenceNakForOneLossHasNoEffect) {
  post_sends(3);
  leave();
  nak(101, NakCode::SequenceError);
  EXPECT_THAT(psns(leave(1)), ElementsAre(101));
  nak(101, NakCode::SequenceError);
  EXPECT_THAT(psns(leave()), ElementsAre(102)) << "it goes on where it was";
  EXPECT_EQ(r().state().retries.retries_left(), 6);
}

TEST_F(Repetition, AfterATimeoutASequenceNakIsActedUpon) {
  post_sends(3);
  leave();
  pass_until_due();
  leave();
  nak(100, NakCode::SequenceError);
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101, 102));
  EXPECT_EQ(r().state().retries.retries_left(), 5);
}

TEST_F(Repetition, TheLastRepeatedPacketAsksForAnAck) {
  rules.ack_every = 100;
  post(WrOp::Write, 10 * kPmtu);
  const auto part = leave(3);
  EXPECT_FALSE(part[2].ask());
  nak(101, NakCode::SequenceError);
  const auto again = leave(2);
  EXPECT_THAT(psns(again), ElementsAre(101, 102));
  EXPECT_TRUE(again[1].ask());
}

TEST_F(Repetition, RepeatedPacketsAreIdentical) {
  post(WrOp::Write, 700, 33);
  verbs::SendWr wr = request(WrOp::SendImm, 10, 5000);
  wr.immediate = 77;
  post(wr);
  post_atomic(WrOp::CmpSwap, {.data = 5, .compare = 4}, 0);
  const auto first = leave();
  pass_until_due();
  const auto again = leave();
  ASSERT_EQ(again.size(), first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::array<std::uint8_t, kMaxHeaderBytes> a{}, b{};
    EXPECT_EQ(emit_headers(first[i].h, first[i].payload.size(), a.data()),
              emit_headers(again[i].h, again[i].payload.size(), b.data()));
    EXPECT_EQ(a, b) << i;
    EXPECT_EQ(first[i].payload, again[i].payload);
  }
}

// ---- RNR

// proves: IB-56
TEST_F(Repetition, AfterAnRnrNakTheMessageIsNotRepeatedBeforeItsTime) {
  for (std::uint8_t code = 0; code < 32; ++code) {
    verbs::SendQueue queue(8, 4, 0, sizeof(SendPart));
    Requester other(qp, rules, &queue, &table);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(queue.post(request(WrOp::Send, 9)), verbs::Post::Ok);
    RequestPacket p;
    while (other.next_packet(now, true, &p)) {
    }
    const Instant refused = now;
    EXPECT_EQ(other.take(acknowledge(101, Syndrome::rnr_nak(code), 0), now).what, Response::RnrNak);
    EXPECT_EQ(other.due(), refused + rnr_wait(code)) << "the transport timer does not run";
    now = refused + rnr_wait(code) - Duration::ns(1);
    other.on_time(now);
    EXPECT_FALSE(other.next_packet(now, true, &p)) << int{code};
    now = refused + rnr_wait(code);
    other.on_time(now);
    ASSERT_TRUE(other.next_packet(now, true, &p)) << int{code};
    EXPECT_EQ(p.header.bth.psn, Psn(101));
    EXPECT_EQ(p.length, 9u);
  }
}

// proves: IB-73
TEST_F(Repetition, RnrRetriesAreLimitedByTheCountUnlessItIsSeven) {
  for (std::uint8_t n = 0; n <= 7; ++n) {
    verbs::SendQueue queue(8, 4, 0, sizeof(SendPart));
    QpAttributes attributes = qp;
    attributes.rnr_retry = n;
    Requester other(attributes, rules, &queue, &table);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(queue.post(request(WrOp::Send, 1)), verbs::Post::Ok);
    RequestPacket p;
    int sent = 0;
    for (int round = 0; round < 100 && !other.failed(); ++round) {
      while (other.next_packet(now, true, &p)) sent += p.header.bth.psn == qp.sq_psn;
      other.take(acknowledge(100, Syndrome::rnr_nak(1), 0), now);
      now = other.failed() ? now : other.due();
      other.on_time(now);
    }
    if (n == 7) {
      EXPECT_FALSE(other.failed());
      EXPECT_EQ(sent, 100);
      continue;
    }
    EXPECT_EQ(sent, 1 + n);
    EXPECT_EQ(other.counters().retries_exhausted, 0u);
    EXPECT_EQ(other.counters().rnr_retries_exhausted, 1u);
    std::vector<Status> got;
    other.flush([&got](const verbs::Completion& c) { got.push_back(c.status); });
    EXPECT_THAT(got, ElementsAre(Status::RnrRetryExceeded, Status::Flushed));
  }
}

// proves: IB-73
TEST_F(Repetition, AGoodResponseReloadsTheRnrCount) {
  qp.rnr_retry = 1;
  post_sends(2);
  leave();
  rnr(100, 1);
  pass_until_due();
  leave();
  ack(100);
  rnr(101, 1);
  EXPECT_FALSE(r().failed());
  pass_until_due();
  leave();
  rnr(101, 1);
  EXPECT_TRUE(r().failed());
}

// proves: IB-147
TEST_F(Repetition, ASequenceNakAfterAnRnrNakUsesNoRetry) {
  qp.rnr_retry = 3;
  post_sends(3);
  leave();
  rnr(100, 12);  // 0.64 ms
  const Instant due = r().due();
  EXPECT_EQ(nak(100, NakCode::SequenceError), Response::SequenceNak);
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_EQ(r().due(), due) << "it is waited out";
  EXPECT_EQ(rnr(100, 12), Response::RnrNak) << "once more of it";
  EXPECT_EQ(r().due(), due);
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101, 102));
  EXPECT_EQ(nak(100, NakCode::SequenceError), Response::SequenceNak);
  EXPECT_THAT(leave(), IsEmpty()) << "also when it was late";
  EXPECT_EQ(r().state().retries.retries_left(), 7);
  EXPECT_EQ(r().state().retries.rnr_left(), 2);
}

// proves: IB-125
TEST_F(Repetition, AnRnrNakInTheMiddleOfAMessageResumesThere) {
  post(WrOp::Send, 4 * kPmtu);
  const auto first = leave();
  rnr(102, 1);
  pass_until_due();
  const auto again = leave();
  ASSERT_THAT(psns(again), ElementsAre(102, 103));
  EXPECT_EQ(again[0].payload, first[2].payload);
  EXPECT_EQ(again[0].operation(), Operation::SendMiddle);
}

TEST_F(Repetition, AReadResponseDoesNotEndTheRnrWaitOfAnotherRead) {
  post(WrOp::Read, 1, 4096);
  post_sends(1);
  leave();
  rnr(101, 20);
  const Instant due = r().due();
  data(Operation::ReadResponseOnly, 100, bytes_of(1, 1));
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_EQ(r().due(), due);
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(101));
}

TEST_F(Repetition, AnAckOfTheRefusedPacketEndsTheRnrWait) {
  post_sends(2);
  leave();
  rnr(100, 20);
  ack(100);
  EXPECT_THAT(psns(leave()), ElementsAre(101)) << "the peer has dropped what was behind it";
}

TEST_F(Repetition, AnRnrNakAfterAnUnansweredReadRepeatsTheReadToo) {
  qp.rnr_retry = 0;
  post(WrOp::Read, 1, 4096);
  post_sends(1);
  leave();
  rnr(101, 1);
  EXPECT_THAT(statuses(), ElementsAre(Status::Flushed, Status::RnrRetryExceeded));
}

}  // namespace
}  // namespace urnic::ib
