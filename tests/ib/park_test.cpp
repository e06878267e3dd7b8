// Requests that find no receive on a FAST queue pair: they wait for one before the peer is sent an
// RNR NAK.
#include "ib/responder.h"
#include "responder_fixture.h"

namespace urnic::ib {
namespace {

using test::Bytes;
using test::counting;
using test::Response;

struct Parked : test::ResponderFixture {
  Parked() {
    qp.loss.type = ConnectionType::Fast;
    qp.loss.rnr_park = 8;
  }
  ParsedPacket send_only(std::uint32_t ahead, Bytes payload = counting(8)) {
    return packet(Operation::SendOnly, psn + ahead, std::move(payload));
  }
  const ResponderState& state() { return responder().state(); }
  // As done by its owner when a receive has been posted.
  void resume() {
    while (responder().receive_posted()) {
      verbs::Completion c;
      for (Received r{Verdict::Accept, false, true}; r.more;) {
        r = responder().take_held(&c);
        turns.push_back(r.verdict);
        if (r.completed) completions.push_back(c);
      }
    }
  }
};

// proves: S-9
TEST_F(Parked, ASendWithoutAReceiveWaitsAndDrawsNoNak) {
  EXPECT_EQ(verdict(send_only(0, counting(20))), Verdict::NotReady);
  EXPECT_TRUE(responder().parked());
  EXPECT_TRUE(responses().empty());
  EXPECT_EQ(state().expected, psn);
  EXPECT_EQ(state().msn, Msn(0));
  EXPECT_FALSE(responder().receive_posted()) << "there is none";
  post(3);
  resume();
  EXPECT_FALSE(responder().parked());
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].byte_len, 20u);
  EXPECT_EQ(Bytes(inbox() + 3000, inbox() + 3020), counting(20));
  const Response ack = only_response();
  EXPECT_TRUE(ack.is_ack());
  EXPECT_EQ(ack.psn, psn);
  EXPECT_EQ(held_pool.in_use(), 0u);
  EXPECT_EQ(responder().counters().parked, 1u);
  EXPECT_EQ(responder().counters().rnr_naks, 0u);
}

// proves: S-9
TEST_F(Parked, LaterRequestsWaitTooAndEachGetsItsReceive) {
  verdict(send_only(0, counting(10)));
  verdict(write_only(psn + 1, 0, counting(16)));
  verdict(send_only(2, counting(30)));
  verdict(read(psn + 3, 0, 16));
  EXPECT_TRUE(responses().empty()) << "nothing is missing but a receive";
  EXPECT_EQ(responder().counters().recovery_attempts, 0u) << "which is no loss";
  post(1);
  resume();
  EXPECT_EQ(state().expected, psn + 2);
  EXPECT_EQ(Bytes(target(), target() + 16), counting(16));
  EXPECT_TRUE(responder().parked()) << "the second Send";
  EXPECT_EQ(only_response().psn, psn + 1);
  post(2);
  resume();
  EXPECT_EQ(state().expected, psn + 4);
  ASSERT_EQ(completions.size(), 2u);
  EXPECT_EQ(completions[1].byte_len, 30u);
  const Response answer = only_response();
  EXPECT_EQ(answer.operation, Operation::ReadResponseOnly);
  EXPECT_EQ(answer.payload, counting(16));
  EXPECT_EQ(responder().counters().parked, 2u);
}

// proves: S-9
TEST_F(Parked, AWriteWithImmediateWaitsAtThePacketThatNeedsTheReceive) {
  Bytes all = counting(kPmtu + 40);
  verdict(
      write(Operation::WriteFirst, psn, 0, kPmtu + 40, Bytes(all.begin(), all.begin() + kPmtu)));
  ParsedPacket last =
      packet(Operation::WriteLastImm, psn + 1, Bytes(all.begin() + kPmtu, all.end()));
  last.header.immediate = 77;
  EXPECT_EQ(verdict(last), Verdict::NotReady);
  EXPECT_TRUE(responses().empty());
  post(0);
  resume();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].immediate, 77u);
  EXPECT_EQ(Bytes(target(), target() + all.size()), all);
}

// proves: S-9
TEST_F(Parked, AfterTheTimeoutAnRnrNakIsSentAndLaterRequestsStayKept) {
  verdict(send_only(0, counting(10)));
  verdict(write_only(psn + 1, 0, counting(16)));
  responder().stop_waiting();
  EXPECT_FALSE(responder().parked());
  const Response nak = only_response();
  EXPECT_EQ(nak.syndrome, Syndrome::rnr_nak(12));
  EXPECT_EQ(nak.psn, psn);
  EXPECT_EQ(state().held.size(), 1u);
  post(1);
  EXPECT_EQ(verdict(send_only(0, counting(10))), Verdict::Accept);
  EXPECT_EQ(state().expected, psn + 2);
  EXPECT_EQ(completions.size(), 1u);
  EXPECT_EQ(held_pool.in_use(), 0u);
}

// proves: S-9
TEST_F(Parked, RequestsUpToTheLimitWaitAndNoMore) {
  for (std::uint32_t i = 0; i < 8; ++i) {
    verdict(send_only(i));
    EXPECT_TRUE(responses().empty()) << i;
  }
  verdict(send_only(8));
  EXPECT_FALSE(responder().parked());
  const Response nak = only_response();
  EXPECT_EQ(nak.syndrome, Syndrome::rnr_nak(12));
  EXPECT_EQ(nak.psn, psn);
  EXPECT_EQ(state().recovery.type(), ConnectionType::Fast);
}

TEST_F(Parked, AFullStoreOfWaitingRequestsDoesNotMakeItSlow) {
  qp.loss.store_packets = 3;
  for (std::uint32_t i = 0; i < 4; ++i) verdict(send_only(i));
  EXPECT_FALSE(responder().parked());
  EXPECT_EQ(only_response().syndrome, Syndrome::rnr_nak(12));
  EXPECT_EQ(state().recovery.type(), ConnectionType::Fast);
  EXPECT_EQ(state().held.size(), 3u);
}

// proves: S-9
TEST_F(Parked, SwitchedOffOrSlowAnRnrNakIsSentAtOnce) {
  for (const bool off : {true, false}) {
    qp.loss.rnr_park = off ? 0 : 8;
    qp.loss.type = off ? ConnectionType::Fast : ConnectionType::Slow;
    again();
    EXPECT_EQ(verdict(send_only(0)), Verdict::NotReady);
    EXPECT_FALSE(responder().parked());
    EXPECT_EQ(only_response().syndrome, Syndrome::rnr_nak(12));
    EXPECT_EQ(held_pool.in_use(), 0u);
  }
}

TEST_F(Parked, ARepetitionOfAWaitingRequestIsAcceptedOnlyIfThereIsAReceive) {
  verdict(send_only(0, counting(10)));
  verdict(send_only(0, counting(10)));
  verdict(send_only(0, counting(10)));
  EXPECT_TRUE(responses().empty());
  EXPECT_EQ(state().held.size(), 1u);
  EXPECT_EQ(responder().counters().parked, 1u);
  post(1);
  verdict(send_only(0, counting(10)));  // arrives before its owner knows of the receive
  EXPECT_FALSE(responder().parked());
  EXPECT_EQ(completions.size(), 1u);
  EXPECT_EQ(state().expected, psn + 1);
  EXPECT_EQ(held_pool.in_use(), 0u);
  EXPECT_FALSE(responder().receive_posted());
}

// A loss after a waiting request could not be reported, since the peer would believe that there is
// no receive. It is reported as soon as there is one.
// proves: S-9
TEST_F(Parked, ALossAfterAWaitingRequestIsReportedOnceItHasItsReceive) {
  verdict(send_only(0));
  verdict(write_only(psn + 2, 0, counting(16)));
  EXPECT_TRUE(responses().empty());
  post(1);
  resume();
  EXPECT_EQ(state().expected, psn + 1);
  const Response nak = only_response();
  EXPECT_TRUE(nak.is_nak(NakCode::SequenceError));
  EXPECT_EQ(nak.psn, psn + 1);
  verdict(write_only(psn + 1, 32, counting(16)));
  EXPECT_EQ(state().expected, psn + 3);
}

// The packet that closes a gap finds no receive: the NAK for the gap is not sent any more.
TEST_F(Parked, ARequestThatClosesAGapMayWaitForAReceive) {
  verdict(send_only(1));
  EXPECT_EQ(verdict(send_only(0)), Verdict::NotReady);
  EXPECT_TRUE(responder().parked());
  EXPECT_TRUE(responses().empty());
  post(1);
  resume();
  EXPECT_TRUE(responder().parked()) << "the next one";
  EXPECT_EQ(state().expected, psn + 1);
  post(2);
  resume();
  EXPECT_EQ(state().expected, psn + 2);
  EXPECT_EQ(completions.size(), 2u);
}

TEST_F(Parked, ADowngradeSendsTheRnrNak) {
  qp.loss.max_recovery_attempts = 0;
  verdict(send_only(0));
  verdict(send_only(2));  // a gap: one too many
  EXPECT_EQ(state().recovery.type(), ConnectionType::Slow);
  EXPECT_FALSE(responder().parked());
  EXPECT_EQ(only_response().syndrome, Syndrome::rnr_nak(12));
  EXPECT_EQ(held_pool.in_use(), 0u);
}

TEST_F(Parked, WithoutMemoryAnRnrNakIsSentAtOnce) {
  HeldPool none(0);
  Responder mine(qp, &rq, &table, &none);
  verbs::Completion c;
  EXPECT_EQ(mine.take(send_only(0), &c).verdict, Verdict::NotReady);
  EXPECT_FALSE(mine.parked());
  ResponsePacket p;
  ASSERT_TRUE(mine.next_response(&p));
  EXPECT_EQ(p.header.aeth.syndrome, Syndrome::rnr_nak(12));
  EXPECT_EQ(mine.state().recovery.type(), ConnectionType::Fast);
}

TEST_F(Parked, AWaitingRequestIsJudgedInItsTurn) {
  verdict(send_only(0, counting(200)));
  post(1, 100);  // too small
  resume();
  EXPECT_EQ(turns, std::vector<Verdict>{Verdict::InvalidRequest});
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].status, verbs::Status::LocalLength);
  EXPECT_TRUE(only_response().is_nak(NakCode::InvalidRequest));
  EXPECT_TRUE(responder().failed());
  EXPECT_FALSE(responder().parked());
  EXPECT_EQ(held_pool.in_use(), 0u);
}

// A shared receive queue does not report posts to a queue pair: an RNR NAK is sent at once.
TEST_F(Parked, WithASharedReceiveQueueNothingWaits) {
  verbs::SharedReceiveQueue shared(kPd, 4, 2);
  BufferPool pool;
  verbs::ReceiveQueue bound(&shared, &pool, 0);
  queue = &bound;
  EXPECT_EQ(verdict(send_only(0)), Verdict::NotReady);
  EXPECT_FALSE(responder().parked());
  EXPECT_EQ(only_response().syndrome, Syndrome::rnr_nak(12));
  again();
}

// A receive is in use; the request waits for READs with the key that it invalidates.
TEST_F(Parked, ASendWithInvalidateThatHasToWaitForReadsDrawsAnRnrNak) {
  post(0);
  next(read(psn, 0, 64));
  ParsedPacket p = packet(Operation::SendOnlyInv, psn, counting(8));
  p.header.inv_rkey = rkey;
  EXPECT_EQ(verdict(p), Verdict::NotReady);
  EXPECT_FALSE(responder().parked());
}

// A READ before it fails when its response is built.
TEST_F(Parked, WhenTheQueuePairHasFailedNothingWaits) {
  next(read(psn, 0, 64));
  verdict(send_only(0));
  EXPECT_TRUE(responder().parked());
  table.invalidate(rkey, qp.peer());
  EXPECT_TRUE(only_response().is_nak(NakCode::RemoteAccess));
  EXPECT_TRUE(responder().failed());
  EXPECT_FALSE(responder().parked());
  verdict(send_only(0));  // releases what was kept
  responder().stop_waiting();
  EXPECT_TRUE(responses().empty());
  EXPECT_EQ(held_pool.in_use(), 0u);
}

TEST_F(Parked, InErrorNothingWaits) {
  verdict(send_only(0));
  responder().forget_held();
  EXPECT_FALSE(responder().parked());
  post(1);
  EXPECT_FALSE(responder().receive_posted());
  EXPECT_EQ(held_pool.in_use(), 0u);
}

}  // namespace
}  // namespace urnic::ib
