// A responder whose peer is urnic, too, reports what it keeps (S-6), and places Writes at once if
// that is allowed (S-2).
#include <gmock/gmock.h>

#include <algorithm>

#include "ib/responder_fixture.h"

namespace urnic::ib {
namespace {

using test::Bytes;
using test::counting;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class KeptTold : public test::ResponderFixture {
 protected:
  KeptTold() {
    qp.loss.type = ConnectionType::Fast;
    qp.selective = qp.peer_selective = true;
  }
  // A write of eight bytes, `ahead` PSNs after the expected one.
  Verdict write_ahead(std::uint32_t ahead, unsigned value = 1) {
    const std::uint64_t at = 64 * ahead;
    return verdict(write_only(qp.rq_psn + ahead, at, counting(8, value)));
  }
  // The packets that the pending SACK reports as kept, as distances from the first PSN.
  std::vector<std::uint32_t> told(Psn* expected = nullptr) {
    std::vector<std::uint32_t> kept;
    ResponsePacket p;
    if (!responder().due() || !responder().next_response(&p)) return kept;
    EXPECT_EQ(p.header.bth.opcode, kSackOpcode);
    const auto sack = parse_sack({p.header, p.payload});
    EXPECT_TRUE(sack);
    if (!sack) return kept;
    if (expected != nullptr) *expected = sack->expected;
    serials.push_back(sack->serial);
    for (std::uint32_t i = 0; i < sack->size(); ++i) {
      if (sack->has(i)) kept.push_back(sack->expected + i - qp.rq_psn);
    }
    return kept;
  }
  std::vector<std::uint32_t> serials;
};

// proves: S-6
TEST_F(KeptTold, EachBurstPastAGapDrawsASackAndNoNak) {
  write_ahead(0);
  responses();
  write_ahead(2);
  write_ahead(3);
  Psn expected;
  EXPECT_THAT(told(&expected), ElementsAre(2, 3));
  EXPECT_EQ(expected, qp.rq_psn + 1);
  EXPECT_FALSE(responder().due());
  write_ahead(6);
  EXPECT_THAT(told(), ElementsAre(2, 3, 6));
  EXPECT_THAT(serials, ElementsAre(1, 2));
  write_ahead(1);  // one gap closes; the other is reported with the pending ACK
  EXPECT_THAT(told(&expected), ElementsAre(6));
  EXPECT_EQ(expected, qp.rq_psn + 4);
  write_ahead(4);
  write_ahead(5);
  EXPECT_TRUE(only_response().is_ack());
  EXPECT_EQ(responder().state().msn, Msn(7));
  EXPECT_EQ(responder().counters().sequence_naks, 0u);
  EXPECT_EQ(responder().counters().sacks, 3u);
}

// proves: S-6
TEST_F(KeptTold, ASlowQueuePairSendsANakInsteadOfASack) {
  qp.loss.type = ConnectionType::Slow;
  write_ahead(1);
  EXPECT_TRUE(only_response().is_nak(NakCode::SequenceError));
}

// proves: S-6
TEST_F(KeptTold, ADowngradeIsReportedByANak) {
  qp.loss.store_packets = 2;
  write_ahead(1);
  write_ahead(2);
  EXPECT_THAT(told(), ElementsAre(1, 2));
  write_ahead(3);
  EXPECT_TRUE(only_response().is_nak(NakCode::SequenceError));
}

// proves: S-7
TEST_F(KeptTold, APeerThatHasNotAgreedGetsNoSack) {
  qp.peer_selective = false;
  write_ahead(1);
  write_ahead(2);
  EXPECT_TRUE(only_response().is_nak(NakCode::SequenceError));
  write_ahead(4);
  EXPECT_THAT(responses(), IsEmpty());
}

// proves: S-2
TEST_F(KeptTold, TheMissingPartOfAReadIsSentInBetweenTheRest) {
  EXPECT_EQ(next(read(psn, 0, 6 * kPmtu)), Verdict::Accept);
  test::Response r;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(response(&r));
  take(read(qp.rq_psn + 1, kPmtu, 2 * kPmtu));
  std::vector<std::uint32_t> order;
  for (const test::Response& each : responses()) order.push_back(each.psn - qp.rq_psn);
  EXPECT_THAT(order, ElementsAre(1, 2, 4, 5));
}

// proves: S-2
TEST_F(KeptTold, SeveralMissingPartsOfAReadAreSentOneAfterTheOther) {
  EXPECT_EQ(next(read(psn, 0, 8 * kPmtu)), Verdict::Accept);
  const auto order = [&] {
    std::vector<std::uint32_t> o;
    for (const test::Response& each : responses()) o.push_back(each.psn - qp.rq_psn);
    return o;
  };
  test::Response r;
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(response(&r));
  take(read(qp.rq_psn + 1, kPmtu, kPmtu));
  take(read(qp.rq_psn + 3, 3 * kPmtu, 2 * kPmtu));
  take(read(qp.rq_psn + 3, 3 * kPmtu, 2 * kPmtu));  // the same again
  EXPECT_THAT(order(), ElementsAre(1, 3, 4, 6, 7));
  // Now no response is in progress.
  take(read(qp.rq_psn + 2, 2 * kPmtu, 2 * kPmtu));
  take(read(qp.rq_psn + 5, 5 * kPmtu, kPmtu));
  std::vector<std::uint32_t> after = order();
  std::ranges::sort(after);
  EXPECT_THAT(after, ElementsAre(2, 3, 5));
}

class PlacedEarly : public KeptTold {
 protected:
  PlacedEarly() { qp.loss.out_of_order = OutOfOrder::Place; }
  Bytes at(std::uint64_t offset) {
    const ByteView v = written(offset, 8);
    return {v.begin(), v.end()};
  }
};

// proves: S-2
TEST_F(PlacedEarly, AWriteWithItsOwnRethIsPlacedAtOnceAndCompletesInItsTurn) {
  write_ahead(1, 50);
  EXPECT_EQ(at(64), counting(8, 50));
  EXPECT_EQ(responder().counters().placed, 1u);
  EXPECT_EQ(responder().state().msn, Msn(0));
  target()[64] ^= 1;  // it is not placed again
  write_ahead(0);
  EXPECT_EQ(responder().state().msn, Msn(2));
  EXPECT_NE(at(64), counting(8, 50));
}

// proves: S-2
TEST_F(PlacedEarly, APartOfTheOpenWriteIsPlacedAtOnce) {
  next(write(Operation::WriteFirst, psn, 0, 3 * kPmtu, counting(kPmtu)));
  verdict(packet(Operation::WriteLast, qp.rq_psn + 2, counting(kPmtu, 9)));
  EXPECT_EQ(at(2 * kPmtu), counting(8, 9));
  verdict(packet(Operation::WriteMiddle, qp.rq_psn + 1, counting(kPmtu, 5)));
  EXPECT_EQ(at(kPmtu), counting(8, 5));
  EXPECT_EQ(responder().state().msn, Msn(1));
}

// proves: S-2
TEST_F(PlacedEarly, TheLaterOfOverlappingWritesIsTheLastOneWritten) {
  verdict(write_only(qp.rq_psn + 2, 4, counting(8, 90)));
  verdict(write_only(qp.rq_psn + 1, 0, counting(8, 70)));  // overlaps it
  EXPECT_THAT(told(), ElementsAre(1));
  verdict(write_only(qp.rq_psn, 0, counting(4, 10)));  // and overlaps that
  responses();
  EXPECT_EQ(responder().state().expected, qp.rq_psn + 1);
  verdict(write_only(qp.rq_psn + 1, 0, counting(8, 70)));
  verdict(write_only(qp.rq_psn + 2, 4, counting(8, 90)));
  EXPECT_EQ(at(4), counting(8, 90));
  EXPECT_EQ(responder().state().msn, Msn(3));
}

// proves: S-3
TEST_F(PlacedEarly, AWriteWithoutAccessIsNotPlaced) {
  ParsedPacket p = write_only(qp.rq_psn + 1, 64, counting(8, 50));
  p.header.reth.rkey ^= 0x100;
  const Bytes before = at(64);
  verdict(p);
  EXPECT_EQ(at(64), before);
  write_ahead(0);
  EXPECT_THAT(turns, ElementsAre(Verdict::RemoteAccess));
  again();
  turns.clear();
  write_ahead(1, 60);
  table.invalidate(rkey, qp.peer());
  EXPECT_EQ(responder().counters().placed, 1u);
  write_ahead(0);
  EXPECT_TRUE(responder().state().msn == Msn(0));
}

}  // namespace
}  // namespace urnic::ib
