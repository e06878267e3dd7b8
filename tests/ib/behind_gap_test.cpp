// Requests past a gap on a FAST queue pair: kept, not counted, and executed when their turn comes.
#include "ib/responder.h"
#include "responder_fixture.h"

namespace urnic::ib {
namespace {

using test::Bytes;
using test::counting;
using test::Response;

struct BehindGap : test::ResponderFixture {
  BehindGap() { qp.loss.type = ConnectionType::Fast; }

  // The Nth packet after the next one; the peer has sent all of them.
  ParsedPacket send_only(std::uint32_t ahead, Bytes payload = counting(8)) {
    return packet(Operation::SendOnly, psn + ahead, std::move(payload));
  }
  const ResponderState& state() { return responder().state(); }
};

// proves: S-3
TEST_F(BehindGap, NothingCountsBeforeTheGapIsClosed) {
  for (int i = 0; i < 4; ++i) post(i);
  const Bytes before(target(), target() + kBytes);
  EXPECT_EQ(verdict(send_only(1)), Verdict::OutOfSequence);
  EXPECT_EQ(verdict(write_only(psn + 2, 512, counting(64))), Verdict::OutOfSequence);
  EXPECT_EQ(verdict(fetch_add(psn + 3, 0, 5)), Verdict::OutOfSequence);
  EXPECT_EQ(verdict(read(psn + 4, 0, 3 * kPmtu)), Verdict::OutOfSequence);
  EXPECT_EQ(verdict(send_only(7)), Verdict::OutOfSequence);
  EXPECT_EQ(state().held.size(), 5u);
  EXPECT_EQ(state().expected, psn);
  EXPECT_EQ(state().msn, Msn(0));
  EXPECT_TRUE(completions.empty());
  EXPECT_EQ(rq.posted(), 4u);
  EXPECT_EQ(Bytes(target(), target() + kBytes), before);
  const Response nak = only_response();
  EXPECT_TRUE(nak.is_nak(NakCode::SequenceError));
  EXPECT_EQ(nak.psn, psn);
  EXPECT_EQ(nak.msn, Msn(0));
}

// proves: S-3, S-4
TEST_F(BehindGap, ClosingTheGapExecutesTheKeptRequestsInOrder) {
  for (int i = 0; i < 4; ++i) post(i);
  verdict(read(psn + 4, 512, 3 * kPmtu));  // must see the WRITE before it
  verdict(send_only(7, counting(20)));
  verdict(write_only(psn + 2, 512, counting(64)));
  verdict(fetch_add(psn + 3, 0, 5));
  verdict(send_only(1, counting(10)));
  responses();
  EXPECT_EQ(verdict(send_only(0, counting(30))), Verdict::Accept);
  EXPECT_EQ(turns, std::vector<Verdict>(5, Verdict::Accept));
  EXPECT_EQ(state().expected, psn + 8);
  EXPECT_EQ(state().msn, Msn(6));
  ASSERT_EQ(completions.size(), 3u);
  EXPECT_EQ(completions[0].byte_len, 30u);
  EXPECT_EQ(completions[1].byte_len, 10u);
  EXPECT_EQ(completions[2].byte_len, 20u);
  EXPECT_EQ(Bytes(inbox() + 2000, inbox() + 2020), counting(20));
  const auto all = responses();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].operation, Operation::AtomicAcknowledge);
  EXPECT_EQ(all[1].psn, psn + 4);
  EXPECT_EQ(Bytes(all[1].payload.begin(), all[1].payload.begin() + 64), counting(64));
  EXPECT_TRUE(all[4].is_ack());
  EXPECT_EQ(all[4].psn, psn + 7);
  EXPECT_EQ(held_pool.in_use(), 0u);
}

// proves: S-4
TEST_F(BehindGap, AGapDrawsOneSequenceNak) {
  for (std::uint32_t i = 1; i < 20; ++i) {
    verdict(write_only(psn + i, 8 * i, counting(8)));
    const auto all = responses();
    EXPECT_EQ(all.size(), i == 1 ? 1u : 0u);
  }
  // The peer repeats them, as if they had been dropped.
  for (std::uint32_t i = 1; i < 20; ++i) verdict(write_only(psn + i, 8 * i, counting(8)));
  EXPECT_TRUE(responses().empty());
  EXPECT_EQ(responder().counters().held, 19u);
}

// proves: S-4
TEST_F(BehindGap, RepeatedRequestsAreDuplicatesAnsweredWithTheNewestPsn) {
  for (std::uint32_t i = 1; i < 10; ++i) verdict(write_only(psn + i, 8 * i, counting(8)));
  responses();
  verdict(write_only(psn, 0, counting(8)));
  const Response first = only_response();
  EXPECT_TRUE(first.is_ack());
  EXPECT_EQ(first.psn, psn + 9);
  // The repetition loses another packet; that does not matter.
  for (const std::uint32_t i : {1u, 2u, 4u, 5u, 6u, 7u, 8u, 9u}) {
    EXPECT_EQ(verdict(write_only(psn + i, 8 * i, counting(8))), Verdict::Duplicate);
    const Response r = only_response();
    EXPECT_TRUE(r.is_ack());
    EXPECT_EQ(r.psn, psn + 9);
  }
}

// proves: S-4
TEST_F(BehindGap, ClosingTheGapIsAcknowledgedEvenWithoutARequestForAnAck) {
  auto quiet = [this](std::uint32_t ahead) {
    ParsedPacket p = write_only(psn + ahead, 8 * ahead, counting(8));
    p.header.bth.ack_request = false;
    return p;
  };
  verdict(quiet(1));
  verdict(quiet(2));
  responses();
  verdict(quiet(0));
  EXPECT_EQ(only_response().psn, psn + 2);
}

// proves: S-4
TEST_F(BehindGap, TheNextGapDrawsItsOwnNakWhenItIsReached) {
  for (const std::uint32_t i : {1u, 3u, 4u}) verdict(write_only(psn + i, 8 * i, counting(8)));
  responses();
  verdict(write_only(psn, 0, counting(8)));
  EXPECT_EQ(state().expected, psn + 2);
  EXPECT_TRUE(only_response().is_ack());
  // The peer repeats everything after the first one, and the packet before the second gap is lost
  // again.
  verdict(write_only(psn + 3, 24, counting(8)));
  const Response nak = only_response();
  EXPECT_TRUE(nak.is_nak(NakCode::SequenceError));
  EXPECT_EQ(nak.psn, psn + 2);
  verdict(write_only(psn + 2, 16, counting(8)));
  EXPECT_EQ(state().expected, psn + 5);
}

// proves: S-3
TEST_F(BehindGap, AKeptRequestRefusedInItsTurnDrawsItsNakAndLaterOnesAreDropped) {
  post(1);
  verdict(write_only(psn + 1, kBytes - 4, counting(8)));  // beyond the region
  verdict(send_only(2));
  responses();
  verdict(write_only(psn, 0, counting(8)));
  EXPECT_EQ(turns, std::vector<Verdict>{Verdict::RemoteAccess});
  const Response nak = only_response();
  EXPECT_TRUE(nak.is_nak(NakCode::RemoteAccess));
  EXPECT_EQ(nak.psn, psn + 1);
  EXPECT_TRUE(responder().failed());
  EXPECT_TRUE(completions.empty());
  EXPECT_EQ(held_pool.in_use(), 0u) << "and nothing is kept any more";
}

// proves: S-3
TEST_F(BehindGap, AKeptRequestWithAnInvalidatedKeyIsRefusedInItsTurn) {
  verdict(write_only(psn + 1, 256, counting(8, 9)));
  table.invalidate(rkey, qp.peer());
  const Bytes before(target() + 256, target() + 264);
  verdict(packet(Operation::WriteOnly, psn));  // no bytes, and no key
  EXPECT_EQ(turns, std::vector<Verdict>{Verdict::RemoteAccess});
  EXPECT_EQ(Bytes(target() + 256, target() + 264), before);
}

TEST_F(BehindGap, AKeptRequestWithoutAReceiveIsRepeatedAndTheRestStaysKept) {
  verdict(send_only(1, counting(10)));
  verdict(write_only(psn + 2, 0, counting(16)));
  responses();
  verdict(write_only(psn, 8, counting(8)));
  EXPECT_EQ(turns, std::vector<Verdict>{Verdict::NotReady});
  EXPECT_EQ(only_response().syndrome, Syndrome::rnr_nak(12));
  post(5);
  EXPECT_EQ(verdict(send_only(1, counting(10))), Verdict::Accept);
  EXPECT_EQ(state().expected, psn + 3);
  EXPECT_EQ(Bytes(target(), target() + 16), counting(16));
  EXPECT_EQ(completions.size(), 1u);
}

// proves: S-8
TEST_F(BehindGap, AGapCausedByAnRnrNakIsNotCountedAsARecovery) {
  qp.loss.max_recovery_attempts = 0;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(verdict(send_only(0)), Verdict::NotReady);
    responses();
    verdict(send_only(1));
    EXPECT_TRUE(responses().empty());
    post(i);
    post(i + 1);
    EXPECT_EQ(verdict(send_only(0)), Verdict::Accept);
    psn += 2;
    EXPECT_EQ(state().expected, psn);
  }
  EXPECT_EQ(responder().counters().downgrades, 0u);
  EXPECT_EQ(responder().counters().recovery_attempts, 0u);
  // A gap further on is a loss.
  EXPECT_EQ(verdict(send_only(0)), Verdict::NotReady);
  verdict(send_only(2));
  EXPECT_EQ(responder().counters().downgrades, 1u);
}

TEST_F(BehindGap, AReadOverThePsnOfAKeptRequestMakesItADuplicate) {
  verdict(write_only(psn + 1, 0, counting(8, 77)));
  const Bytes before(target(), target() + 8);
  responses();
  verdict(read(psn, 0, 3 * kPmtu));
  EXPECT_EQ(turns, std::vector<Verdict>{Verdict::Duplicate});
  EXPECT_EQ(Bytes(target(), target() + 8), before) << "a duplicate is not carried out";
  EXPECT_EQ(state().expected, psn + 3);
}

TEST_F(BehindGap, AMissingMiddlePacketCompletesTheKeptMessage) {
  post(1);
  const Bytes message = counting(3 * kPmtu + 5);
  const auto part = [&](std::uint32_t i, std::size_t n) {
    return Bytes(message.begin() + i * kPmtu, message.begin() + i * kPmtu + static_cast<long>(n));
  };
  verdict(packet(Operation::SendFirst, psn, part(0, kPmtu)));
  verdict(packet(Operation::SendLast, psn + 3, part(3, 5)));
  verdict(packet(Operation::SendMiddle, psn + 2, part(2, kPmtu)));
  EXPECT_TRUE(completions.empty());
  verdict(packet(Operation::SendMiddle, psn + 1, part(1, kPmtu)));
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].byte_len, message.size());
  EXPECT_EQ(Bytes(inbox() + 1000, inbox() + 1000 + message.size()), message);
}

TEST_F(BehindGap, APacketLongerThanThePathMtuIsNotKept) {
  verdict(packet(Operation::SendOnly, psn + 1, counting(kPmtu + 4)));
  EXPECT_TRUE(state().held.empty());
}

TEST_F(BehindGap, ASlowQueuePairKeepsNothing) {
  for (const bool by_type : {true, false}) {
    qp.loss.type = by_type ? ConnectionType::Slow : ConnectionType::Fast;
    qp.loss.out_of_order = by_type ? OutOfOrder::Store : OutOfOrder::Drop;
    again();
    EXPECT_EQ(name(state().recovery.reason()), by_type ? "initiated-slow" : "drop");
    verdict(write_only(psn + 1, 0, counting(8)));
    EXPECT_TRUE(state().held.empty());
    EXPECT_EQ(held_pool.in_use(), 0u);
    verdict(write_only(psn, 0, counting(8)));
    EXPECT_EQ(state().expected, psn + 1);
    EXPECT_EQ(responder().counters().downgrades, 0u);
  }
}

// ---- bounded recovery

// proves: S-8
TEST_F(BehindGap, OneGapTooManyMakesItSlowAndDropsTheKeptRequests) {
  qp.loss.max_recovery_attempts = 3;
  for (const std::uint32_t i : {1u, 3u, 4u, 6u}) verdict(write_only(psn + i, 0, counting(8)));
  EXPECT_EQ(state().recovery.type(), ConnectionType::Fast);
  EXPECT_EQ(responder().counters().recovery_attempts, 3u);
  verdict(write_only(psn + 8, 0, counting(8)));
  EXPECT_EQ(state().recovery.reason(), SlowReason::RecoveryExhausted);
  EXPECT_EQ(responder().counters().downgrades, 1u);
  EXPECT_EQ(held_pool.in_use(), 0u);
  verdict(write_only(psn, 0, counting(8)));
  EXPECT_EQ(state().expected, psn + 1) << "what was kept is forgotten";
  EXPECT_TRUE(turns.empty());
}

// proves: S-8
TEST_F(BehindGap, AFullStoreMakesItSlow) {
  qp.loss.store_packets = 3;
  for (std::uint32_t i = 1; i <= 3; ++i) verdict(write_only(psn + i, 0, counting(8)));
  EXPECT_EQ(state().recovery.type(), ConnectionType::Fast);
  verdict(write_only(psn + 2, 0, counting(8)));
  EXPECT_EQ(state().recovery.type(), ConnectionType::Fast) << "it has that one";
  verdict(write_only(psn + 4, 0, counting(8)));
  EXPECT_EQ(state().recovery.reason(), SlowReason::StoreFull);
  EXPECT_EQ(responder().counters().store_full, 1u);
  EXPECT_TRUE(state().held.empty());
}

// proves: S-8
TEST_F(BehindGap, EnoughRequestsInOrderMakeItFastAgain) {
  qp.loss.max_recovery_attempts = 0;
  qp.loss.upgrade_after = 4;
  verdict(write_only(psn + 1, 0, counting(8)));
  EXPECT_EQ(state().recovery.type(), ConnectionType::Slow);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next(write_only(psn, 0, counting(8))), Verdict::Accept);
  verdict(write_only(psn + 1, 0, counting(8)));  // not consecutive
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next(write_only(psn, 0, counting(8))), Verdict::Accept);
  EXPECT_EQ(state().recovery.type(), ConnectionType::Slow);
  verdict(write_only(psn - 1, 0, counting(8)));  // a duplicate has no effect
  next(write_only(psn, 0, counting(8)));
  EXPECT_EQ(state().recovery.type(), ConnectionType::Fast);
  EXPECT_EQ(responder().counters().upgrades, 1u);
  EXPECT_FALSE(state().watch) << "and nothing is looked at any more";
}

// proves: S-8
TEST_F(BehindGap, GapsFarApartNeverMakeItSlow) {
  qp.loss.max_recovery_attempts = 1;
  for (int i = 0; i < 50; ++i) {
    verdict(write_only(psn + 1, 0, counting(8)));
    verdict(write_only(psn, 0, counting(8)));
    psn += 2;
    EXPECT_EQ(state().expected, psn);
    EXPECT_FALSE(state().watch);
  }
  EXPECT_EQ(responder().counters().recovery_attempts, 50u);
  EXPECT_EQ(responder().counters().downgrades, 0u);
}

// The engine's memory is bounded: a queue pair that gets none is SLOW, others are not affected.
// proves: S-8
TEST_F(BehindGap, AnExhaustedPoolMakesItSlow) {
  HeldPool small(0);
  Responder mine(qp, &rq, &table, &small);
  verbs::Completion c;
  mine.take(write_only(psn + 1, 0, counting(8)), &c);
  EXPECT_EQ(mine.state().recovery.reason(), SlowReason::StoreFull);
  EXPECT_EQ(mine.take(write_only(psn, 0, counting(8)), &c).verdict, Verdict::Accept);
}

}  // namespace
}  // namespace urnic::ib
