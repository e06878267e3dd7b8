// Selective repeat (S-6): the reaction of a requester to SACKs written by the test.
#include "ib/selective.h"

#include <gmock/gmock.h>

#include "base/rng.h"
#include "ib/requester_bench.h"

namespace urnic::ib {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using verbs::WrOp;

// Writes of one packet each from PSN 100 on; a round trip takes 100 us.
class Selective : public RequesterBench {
 protected:
  static constexpr Duration kTrip = Duration::us(100);

  Selective() { qp.selective = qp.peer_selective = true; }

  // Sends `n` of them, one per microsecond.
  void write(int n) {
    for (int i = 0; i < n; ++i) {
      post(WrOp::Write, 8);
      ASSERT_EQ(leave().size(), 1u);
      pass(Duration::us(1));
    }
  }
  Response sack(std::uint32_t expected, std::initializer_list<std::uint32_t> kept) {
    SackWriter writer(&own_, ++serial_);
    for (const std::uint32_t psn : kept) writer.set(psn - expected);
    ParsedPacket p;
    p.header.bth.opcode = kSackOpcode;
    p.header.bth.psn = Psn(expected - 1);
    p.header.aeth = {Syndrome::ack(kNoCredits), Msn(0)};
    p.payload = writer.payload();
    return take(p);
  }
  const RequesterCounters& counters() { return r().counters(); }

  std::uint32_t serial_ = 0;

 private:
  SackBytes own_;
};

// proves: S-6
TEST_F(Selective, OnlyLostPacketsAreResentAndOnlyAcknowledgedRequestsComplete) {
  write(6);
  pass(kTrip - Duration::us(4));
  EXPECT_EQ(sack(101, {102, 104, 105}), Response::Sack);
  EXPECT_THAT(done(), ElementsAre(1));
  EXPECT_THAT(leave(), IsEmpty()) << "they may only be late";
  pass(kTrip);
  const auto again = leave();
  EXPECT_THAT(psns(again), ElementsAre(101, 103));
  for (const SentPacket& p : again) EXPECT_TRUE(p.ask());
  EXPECT_EQ(counters().alone, 2u);
  EXPECT_EQ(counters().timeouts, 0u);
  EXPECT_EQ(counters().sequence_naks, 0u);
  pass(kTrip);
  ack(105);
  EXPECT_THAT(done(), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_EQ(held_pool.in_use(), 0u);
}

// proves: S-6
TEST_F(Selective, APacketLateWithinTheReorderingWindowIsNotRepeated) {
  write(50);
  pass(kTrip - Duration::us(50));
  sack(101, {102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112});
  pass(Duration::us(5));
  EXPECT_THAT(leave(), IsEmpty());
  ack(149);
  pass(kTrip * 5);
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_EQ(counters().repeated, 0u);
  EXPECT_EQ(done().size(), 50u);
}

// proves: S-6
TEST_F(Selective, TheReorderingWindowGrowsWithPacketsThatWereOnlyLate) {
  write(3);
  pass(kTrip);
  ack(100);
  const Duration before = r().state().log.reordering_window();
  sack(101, {102});
  pass(kTrip * 2);
  EXPECT_THAT(psns(leave()), ElementsAre(101));
  pass(Duration::us(5));  // sooner than a round trip: it acknowledges the first copy
  ack(102);
  EXPECT_GT(r().state().log.reordering_window(), before);
  EXPECT_EQ(counters().needless, 0u) << "counted when losses are judged";
  write(1);
  pass(kTrip);
  ack(103);
  EXPECT_EQ(counters().needless, 0u);
}

// proves: S-6
TEST_F(Selective, ALateBurstWidensTheReorderingWindowOnce) {
  write(8);
  pass(kTrip);
  ack(100);
  const Duration before = r().state().log.reordering_window();
  sack(101, {107});
  pass(kTrip * 2);
  EXPECT_EQ(leave().size(), 6u);
  pass(Duration::us(5));
  ack(107);
  EXPECT_GT(r().state().log.reordering_window(), before);
  EXPECT_LE(r().state().log.reordering_window(), before * 2);
}

// proves: S-6
TEST_F(Selective, TheFirstRoundTripIsNotMeasuredByARepetition) {
  write(3);
  nak(100, NakCode::SequenceError);
  EXPECT_EQ(leave().size(), 3u);
  pass(Duration::us(5));
  sack(101, {102});
  EXPECT_EQ(r().state().log.round_trip(), Duration::zero());
}

// proves: S-6
TEST_F(Selective, ALostRepetitionIsRepeatedWhenALaterPacketHasArrived) {
  write(4);
  pass(kTrip);
  sack(100, {103});
  pass(kTrip);
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101, 102));
  pass(kTrip);
  sack(100, {101, 102, 103});
  EXPECT_THAT(leave(), IsEmpty());
  pass(kTrip);
  EXPECT_THAT(psns(leave()), ElementsAre(100));
  EXPECT_EQ(counters().timeouts, 0u);
}

// proves: S-6
TEST_F(Selective, AnOlderSackIsIgnoredAndADroppedPacketIsMissingAgain) {
  write(4);
  pass(kTrip);
  serial_ = 9;
  sack(100, {101, 102, 103});
  serial_ = 3;
  sack(100, {103});  // an older SACK
  pass(kTrip * 2);
  EXPECT_THAT(psns(leave()), ElementsAre(100));
  serial_ = 20;
  pass(kTrip);
  sack(100, {103});  // the peer has dropped the others
  pass(kTrip * 2);
  EXPECT_THAT(psns(leave()), ElementsAre(101, 102));
}

// proves: S-6
TEST_F(Selective, ANakStillRepeatsEverything) {
  write(4);
  pass(kTrip);
  sack(100, {102, 103});
  nak(100, NakCode::SequenceError);
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101, 102, 103));
}

// proves: S-6
TEST_F(Selective, AfterAnRnrNakOnlyTheRefusedPacketIsResent) {
  write(4);
  pass(kTrip);
  rnr(100, 1);
  EXPECT_THAT(leave(), IsEmpty());
  pass(Duration::ms(1));
  EXPECT_THAT(psns(leave()), ElementsAre(100));
}

// proves: S-6
TEST_F(Selective, WithoutALogASackCountsAsASequenceNak) {
  qp.peer_selective = false;
  write(3);
  qp.peer_selective = true;  // it has agreed meanwhile
  pass(kTrip);
  sack(100, {101, 102});
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101, 102));
  EXPECT_EQ(counters().sequence_naks, 1u);
}

// proves: S-6
TEST_F(Selective, AFalseSackCompletesNothing) {
  write(3);
  pass(kTrip);
  sack(100, {100, 101, 102, 103, 900});  // all of them, and one never sent
  EXPECT_EQ(counters().sacks_invalid, 1u);
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_EQ(sack(104, {105}), Response::Ghost);  // beyond the packets sent
  sack(50, {51});                                // long ago
  EXPECT_THAT(done(), IsEmpty());
  EXPECT_EQ(r().state().una.psn, Psn(100));
  pass_until_due();  // the transport timer is not affected
  while (leave().empty()) pass_until_due();
  EXPECT_FALSE(r().failed());
}

// Any SACKs: nothing completes by them, and everything is answered in the end.
// proves: S-6
TEST_F(Selective, AnySacksCompleteNothingAndEverythingIsAnswered) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng(seed);
    verbs::SendQueue queue(16, 4, 0, sizeof(SendPart));
    QpAttributes attributes = qp;
    attributes.sq_psn = Psn(static_cast<std::uint32_t>(rng.next()));
    attributes.retry_count = 7;
    Requester mine(attributes, rules, &queue, &table, &held_pool);
    use(&mine);
    std::uint64_t posted = 0, completed = 0;
    const auto sink = [&](const verbs::Completion&) { ++completed; };
    RequestPacket out;
    for (int step = 0; step < 80 && !mine.failed(); ++step) {
      constexpr WrOp kOps[] = {WrOp::Send, WrOp::Write, WrOp::Read, WrOp::CmpSwap};
      const WrOp op = kOps[rng.below(std::size(kOps))];
      const auto n = static_cast<std::uint32_t>(verbs::is_atomic(op) ? 8 : rng.below(900));
      if (rng.chance(0.5)) posted += queue.post(request(op, n)) == verbs::Post::Ok;
      for (int i = 0; i < 8 && mine.next_packet(now, true, &out); ++i) {
      }
      const SendState& s = mine.state();
      std::vector<std::uint8_t> payload(4 * rng.below(40));
      for (std::uint8_t& o : payload) o = static_cast<std::uint8_t>(rng.next() & rng.next());
      ParsedPacket p;
      p.header.bth.opcode = kSackOpcode;
      const auto off = static_cast<std::uint32_t>(rng.below(s.outstanding() + 6));
      p.header.bth.psn = rng.chance(0.8) ? s.una.psn - 1 : s.una.psn - 3 + off;
      const bool old_msn = rng.chance(0.5);
      const auto back = static_cast<std::uint32_t>(old_msn ? kPsnWindow : rng.below(6));
      p.header.aeth = {Syndrome::ack(kNoCredits), s.ssn + 2 - back};
      p.payload = payload;
      const Psn before = s.una.psn;
      const bool says = p.header.bth.psn + 1 != before;
      mine.take(p, now);
      mine.report(sink);
      if (!says && old_msn) {
        ASSERT_EQ(s.una.psn, before) << seed;
      }
      now = now + Duration::us(static_cast<std::int64_t>(rng.below(300)));
      if (mine.due() <= now) mine.on_time(now);
    }
    mine.stop();
    mine.flush(sink);
    ASSERT_EQ(completed, posted) << seed;
    ASSERT_EQ(held_pool.in_use(), 0u) << seed;
  }
  use(nullptr);
}

// ---- responses past a hole (S-2)

class AnswerHoles : public RequesterBench {
 protected:
  AnswerHoles() { qp.loss.type = ConnectionType::Fast; }
  Response part(Operation o, std::uint32_t psn) {
    return data(o, psn, bytes_of(kPmtu, static_cast<std::uint8_t>(psn)));
  }
};

// proves: S-2
TEST_F(AnswerHoles, LaterResponsesAreKeptAndOnlyTheMissingPartIsRequested) {
  using enum Operation;
  post(WrOp::Read, 6 * kPmtu);
  leave();
  part(ReadResponseFirst, 100);
  EXPECT_EQ(part(ReadResponseMiddle, 103), Response::Ahead);
  EXPECT_EQ(part(ReadResponseMiddle, 104), Response::Ahead);
  EXPECT_THAT(done(), IsEmpty());
  pass_until_due();
  const auto again = leave();
  ASSERT_THAT(psns(again), ElementsAre(101));
  EXPECT_EQ(again[0].h.reth.length, 2 * kPmtu);
  EXPECT_EQ(again[0].h.reth.address, 0x10000u + kPmtu);
  EXPECT_EQ(r().counters().sequence_naks + r().counters().implied_naks, 0u);
  part(ReadResponseFirst, 101);
  part(ReadResponseLast, 102);
  part(ReadResponseLast, 105);
  EXPECT_THAT(done(), ElementsAre(1));
  for (std::uint32_t i = 0; i < 6 * kPmtu; ++i) ASSERT_EQ(memory[i], 100 + i / kPmtu) << i;
  EXPECT_EQ(r().counters().ahead, 2u);
  EXPECT_EQ(r().counters().missing, 1u);
  EXPECT_EQ(held_pool.in_use(), 0u);
}

// proves: S-2
TEST_F(AnswerHoles, AllMissingPartsAreRequestedAtOnceOnlyFromAPeerThatHasAgreed) {
  using enum Operation;
  for (const bool agreed : {false, true}) {
    qp.peer_parts = agreed;
    post(WrOp::Read, 8 * kPmtu);
    const std::uint32_t first = psns(leave()).at(0);
    part(ReadResponseFirst, first);
    part(ReadResponseMiddle, first + 2);
    part(ReadResponseMiddle, first + 4);
    part(ReadResponseMiddle, first + 5);
    part(ReadResponseLast, first + 7);
    pass_until_due();
    const auto again = leave();
    if (!agreed) {
      EXPECT_THAT(psns(again), ElementsAre(first + 1));
      part(ReadResponseOnly, first + 1);
      pass_until_due();
      EXPECT_THAT(psns(leave()), ElementsAre(first + 3));
      part(ReadResponseOnly, first + 3);
      pass_until_due();
      EXPECT_THAT(psns(leave()), ElementsAre(first + 6));
    } else {
      ASSERT_THAT(psns(again), ElementsAre(first + 1, first + 3, first + 6));
      for (const auto& p : again) EXPECT_EQ(p.h.reth.length, kPmtu);
      part(ReadResponseOnly, first + 1);
      part(ReadResponseOnly, first + 3);
    }
    part(ReadResponseOnly, first + 6);
    EXPECT_EQ(done().size(), 1u);
  }
  EXPECT_EQ(held_pool.in_use(), 0u);
}

// proves: S-2
TEST_F(AnswerHoles, AnOvertakenPartIsRequestedAgainEarly) {
  using enum Operation;
  qp.peer_selective = qp.peer_parts = true;
  post(WrOp::Write, 1);
  leave();
  pass(Duration::us(100));
  ack(100, 1);  // measures the round trip
  post(WrOp::Read, 6 * kPmtu);
  leave();
  part(ReadResponseFirst, 101);
  part(ReadResponseMiddle, 103);
  part(ReadResponseLast, 106);
  pass_until_due();
  const Instant asked = now;
  ASSERT_THAT(psns(leave()), ElementsAre(102, 104));
  pass(Duration::us(100));
  part(ReadResponseFirst, 104);  // its two packets; 102 should have come before
  part(ReadResponseLast, 105);
  EXPECT_THAT(psns(leave()), IsEmpty()) << "it may only be late";
  std::vector<std::uint32_t> again;
  while (again.empty() && now - asked < Duration::ms(2)) {
    pass_until_due();
    again = psns(leave());
  }
  EXPECT_THAT(again, ElementsAre(102));
  EXPECT_LT(now - asked, Duration::us(200)) << "500 us are the least when nothing says so";
}

// A part queued behind the other responses on the path is not lost.
// proves: S-2
TEST_F(AnswerHoles, WhileOtherResponsesArriveAPartIsRequestedAgainOnlyAfterALimit) {
  using enum Operation;
  qp.ack_timeout = 18;  // 1.07 s
  for (const bool it_comes : {true, false}) {
    post(WrOp::Read, 200 * kPmtu);
    const std::uint32_t first = psns(leave()).at(0);
    part(ReadResponseFirst, first);
    part(ReadResponseMiddle, first + 2);
    pass_until_due();
    ASSERT_THAT(psns(leave()), ElementsAre(first + 1));
    const Instant asked = now;
    std::uint32_t next = first + 3;
    std::vector<SentPacket> again;
    while (again.empty() && now - asked < Duration::ms(it_comes ? 2 : 15)) {
      pass(Duration::us(100));
      part(ReadResponseMiddle, next++);
      again = leave();
    }
    if (it_comes) {
      EXPECT_THAT(again, IsEmpty());
    } else {
      EXPECT_THAT(psns(again), ElementsAre(first + 1));
      EXPECT_LT(now - asked, Duration::ms(6));
    }
    part(ReadResponseOnly, first + 1);
    for (; next != first + 199; ++next) part(ReadResponseMiddle, next);
    part(ReadResponseLast, next);
    EXPECT_EQ(done().size(), 1u);
  }
}

// proves: S-2
TEST_F(AnswerHoles, ALaterResponseIsKeptAndItsAcknowledgmentIsRemembered) {
  using enum Operation;
  post(WrOp::Read, kPmtu);
  post(WrOp::Write, 8);
  post_atomic(WrOp::FetchAdd, {}, 4096);
  leave();
  EXPECT_EQ(result(102, 7), Response::Ahead);
  EXPECT_THAT(done(), IsEmpty());
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(100));
  part(ReadResponseOnly, 100);
  EXPECT_THAT(done(), ElementsAre(1, 2, 3));
}

// proves: S-2
TEST_F(AnswerHoles, AReadWhoseMemoryIsGoneMeanwhileFailsInItsTurn) {
  using enum Operation;
  post(WrOp::Read, 3 * kPmtu);
  leave();
  part(ReadResponseLast, 102);
  part(ReadResponseFirst, 100);
  table.deregister(lkey);
  part(ReadResponseMiddle, 101);
  EXPECT_THAT(statuses(), ElementsAre(verbs::Status::LocalProtection));
}

// proves: S-2
TEST_F(AnswerHoles, AKeptResponseWhoseMemoryIsGoneFailsInItsTurn) {
  using enum Operation;
  post(WrOp::Read, kPmtu);
  const std::uint32_t first = lkey;
  lkey = table.register_memory(kPd, memory.data(), memory.size(), verbs::kLocalWrite);
  post(WrOp::Read, kPmtu);
  leave();
  part(ReadResponseOnly, 101);
  table.deregister(lkey);
  lkey = first;
  part(ReadResponseOnly, 100);
  EXPECT_THAT(statuses(), ElementsAre(verbs::Status::Success, verbs::Status::LocalProtection));
}

// proves: S-2
TEST_F(AnswerHoles, ASlowQueuePairRepeatsEverything) {
  using enum Operation;
  qp.loss.type = ConnectionType::Slow;
  post(WrOp::Read, 4 * kPmtu);
  leave();
  part(ReadResponseFirst, 100);
  EXPECT_EQ(part(ReadResponseMiddle, 102), Response::ImpliedNak);
  const auto again = leave();
  ASSERT_THAT(psns(again), ElementsAre(101));
  EXPECT_EQ(again[0].h.reth.length, 3 * kPmtu);
}

}  // namespace
}  // namespace urnic::ib
