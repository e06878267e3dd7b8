// Data beyond a gap is kept, reported, and placed when the gap closes; overlaps; data that is not
// kept (E-41).
#include "tests/iwarp/rx_detour.h"
#include "ddp_rdma/terminate.h"

namespace urnic::test {
namespace {

using Block = std::pair<std::uint64_t, std::uint64_t>;

// proves: E-41, E-12
TEST_F(RxDetour, DataBeyondAGapIsKeptReportedAndPlacedWhenTheGapCloses) {
  up();
  auto a = send(2);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 0u);
  ASSERT_EQ(a[0].sack.size(), 1u);
  EXPECT_EQ(a[0].sack[0], Block(2 * kSize, 3 * kSize));
  a = send(1);
  ASSERT_EQ(a.size(), 1u);
  ASSERT_EQ(a[0].sack.size(), 1u);
  EXPECT_EQ(a[0].sack[0], Block(kSize, 3 * kSize));
  EXPECT_TRUE(p.untouched()) << "nothing is placed before it is in order";
  EXPECT_NE(kept(), 0u);
  a = send(0);
  ASSERT_FALSE(a.empty());
  EXPECT_EQ(a.back().ack, 3 * kSize);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(placed(i));
  EXPECT_EQ(kept(), 0u) << "the detour ends with the buffer empty";
  send(3);
  EXPECT_TRUE(placed(3));
  expect_nothing_happened();
  const ConnectionStats s = p.stats();
  EXPECT_EQ(s.iwarp.detours, 1u);
  EXPECT_EQ(s.iwarp.bytes_detour, 2 * kSize);
  EXPECT_EQ(s.iwarp.bytes_fast, 2 * kSize);
  EXPECT_EQ(s.iwarp.bytes_copied, 4 * kPayload + 2 * kSize);
  EXPECT_EQ(s.iwarp.holes_opened, 1u);
  EXPECT_EQ(s.iwarp.holes_closed, 1u);
}

// proves: E-41
TEST_F(RxDetour, InOrderSegmentsAreCutThroughDuringADetour) {
  up();
  send(3);
  send(0);
  EXPECT_TRUE(placed(0)) << "at once";
  EXPECT_EQ(p.stats().iwarp.bytes_fast, kSize);
  EXPECT_EQ(p.rcv_nxt(), kSize);
  EXPECT_FALSE(placed(3));
  send(1);
  EXPECT_TRUE(placed(1));
  EXPECT_FALSE(placed(3)) << "a gap is left";
  send(2);
  EXPECT_TRUE(placed(2) && placed(3));
  EXPECT_EQ(p.rcv_nxt(), 4 * kSize);
  EXPECT_EQ(kept(), 0u);
  expect_nothing_happened();
}

// proves: E-41
TEST_F(RxDetour, DeliveryGoesToTheNextGapAndNoFurther) {
  up();
  more(8);
  for (const std::size_t i : {6, 1, 4, 3}) send(i);
  ASSERT_EQ(p.holes(), 3u);
  send(0);
  EXPECT_TRUE(placed(0) && placed(1));
  EXPECT_FALSE(placed(3) || placed(4) || placed(6));
  EXPECT_EQ(p.rcv_nxt(), 2 * kSize);
  send(2);
  EXPECT_TRUE(placed(2) && placed(3) && placed(4));
  EXPECT_FALSE(placed(6));
  EXPECT_EQ(p.rcv_nxt(), 5 * kSize);
  send(5);
  EXPECT_TRUE(placed(6));
  EXPECT_EQ(p.stats().iwarp.detours, 1u) << "it was never empty in between";
  send(7);
  EXPECT_TRUE(placed(7));
  EXPECT_EQ(kept(), 0u);
  expect_nothing_happened();
}

// proves: E-41, R-6, R-100
TEST_F(RxDetour, MessagesCompleteInOrderWhenTheirGapCloses) {
  ASSERT_TRUE(p.up());
  sends();
  p.send(at[3], m[3]);
  p.send(at[1], m[1]);
  EXPECT_TRUE(p.receives().empty());
  EXPECT_TRUE(p.untouched());
  p.send(at[0], m[0]);
  EXPECT_EQ(good_receives(p), 2u);
  p.send(at[2], m[2]);
  expect_all_delivered_once();
  expect_nothing_happened();
}

// A Read Request after a gap is answered when the gap is closed.
// proves: E-41, R-91
TEST_F(RxDetour, AReadRequestAfterAGapWaits) {
  up();
  std::fill(p.region.begin() + 5000, p.region.begin() + 5010, 0x77);
  p.send(kSize, p.read_request(1, 10, 5000));
  EXPECT_EQ(p.stats().verbs.read_requests_received, 0u);
  const auto a = send(0);
  EXPECT_EQ(p.stats().verbs.read_requests_received, 1u);
  std::size_t bytes = 0;
  for (const Answer& x : a) bytes += x.payload.size();
  EXPECT_EQ(bytes, make_fpdu(Bytes(14 + 10)).size());
}

// The sequence numbers wrap around during the detour.
// proves: E-41
TEST_F(RxDetour, WorksAcrossTheWrapAroundOfSequenceNumbers) {
  for (std::uint64_t i = 0; i <= 4; ++i) {
    HandPeer h;
    h.options.out_of_order = engine::Options::OutOfOrder::Store;
    h.iss = static_cast<std::uint32_t>(0u - 21 - i * kSize);
    ASSERT_TRUE(h.up());
    std::vector<Bytes> f;
    for (std::uint64_t k = 0; k < 4; ++k) {
      f.push_back(h.write(k * 1000, Bytes(kPayload, static_cast<std::uint8_t>(k + 1))));
    }
    h.send(3 * kSize, f[3]);
    h.send(kSize, f[1]);
    h.send(0, f[0]);
    h.send(2 * kSize, f[2]);
    EXPECT_EQ(h.rcv_nxt(), 4 * kSize);
    for (std::uint64_t k = 0; k < 4; ++k) {
      EXPECT_EQ(h.at(k * 1000, kPayload), Bytes(kPayload, static_cast<std::uint8_t>(k + 1)));
    }
    EXPECT_TRUE(h.fast());
    EXPECT_EQ(h.stats().iwarp.bytes_slow, 0u);
  }
}

// ---- overlaps ----------------------------------------------------------------------------------

// proves: E-41, R-99
TEST_F(RxDetour, AnOverlapAtRcvNxtIsCutThroughAndItsMessagesCountOnce) {
  ASSERT_TRUE(p.up());
  sends();
  p.send(at[1], m[1]);
  p.send(at[3], m[3]);
  p.send(at[0], joined({m[0], m[1], m[2]}));
  expect_all_delivered_once();
  EXPECT_EQ(p.rcv_nxt(), at[4]);
  EXPECT_EQ(kept(), 0u);
  const ConnectionStats s = p.stats();
  EXPECT_EQ(s.iwarp.bytes_fast + s.iwarp.bytes_detour, at[4]) << "every byte of the stream once";
  expect_nothing_happened();
}

// proves: E-41, R-99
TEST_F(RxDetour, AnOverlapBeyondTheGapKeepsOnlyNewBytes) {
  ASSERT_TRUE(p.up());
  sends();
  p.send(at[2], m[2]);
  const auto a = p.send(at[1], joined({m[1], m[2], m[3]}));
  ASSERT_FALSE(a.empty());
  ASSERT_EQ(a.back().sack.size(), 1u);
  EXPECT_EQ(a.back().sack[0], Block(at[1], at[4]));
  EXPECT_EQ(p.stats().iwarp.bytes_detour, at[4] - at[1]);
  p.send(at[1], joined({m[1], m[2]}));
  EXPECT_EQ(p.stats().iwarp.bytes_detour, at[4] - at[1]) << "a duplicate is not kept again";
  p.send(at[0], m[0]);
  expect_all_delivered_once();
  expect_nothing_happened();
}

// proves: E-41, R-9
TEST_F(RxDetour, AnOverlapFromBelowRcvNxtIsProcessedFromRcvNxtOn) {
  ASSERT_TRUE(p.up());
  sends();
  p.send(at[0], m[0]);
  p.send(at[2], m[2]);
  ASSERT_EQ(good_receives(p), 1u);
  std::fill(p.region.begin(), p.region.begin() + 100, 0xcc);  // the memory is the consumer's again
  p.send(at[0], joined({m[0], m[1], m[2], m[3]}));
  EXPECT_EQ(p.at(0, 100), Bytes(100, 0xcc));
  EXPECT_EQ(good_receives(p), 4u);
  EXPECT_EQ(p.at(1000, 101), Bytes(101, 0x52));
  EXPECT_EQ(p.at(3000, 103), Bytes(103, 0x54));
  EXPECT_EQ(kept(), 0u);
  expect_nothing_happened();
}

// ---- data that is not kept ---------------------------------------------------------------------

// Corrupted data is refused while it can still be repaired (R-29 is not reached).
// proves: E-41, R-25
TEST_F(RxDetour, ASegmentWithAWrongCrcIsNotKept) {
  up();
  auto a = send_spoiled(2);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].sack.empty());
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 1u);
  send(3);
  a = p.send(kSize, joined({fpdus[1], spoiled(2)}));
  ASSERT_EQ(a.back().sack.size(), 1u) << "not even the valid FPDU in front";
  EXPECT_EQ(a.back().sack[0], Block(3 * kSize, 4 * kSize));
  for (const std::size_t i : {2, 1, 0}) send(i);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(placed(i));
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
  EXPECT_EQ(p.stats().iwarp.downgrades, 0u);
}

// proves: E-41, E-6
TEST_F(RxDetour, AViolationBeyondTheGapIsNotKeptAndTerminatesInOrder) {
  up();
  const Bytes outside =
      make_fpdu(ddp::test::write_segment(p.stag, p.to(p.region.size() - 10), Bytes(kPayload, 1)));
  p.send(kSize, outside);
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
  EXPECT_EQ(p.holes(), 0u);
  EXPECT_EQ(kept(), 0u);
  send(2);
  send(0);
  p.send(kSize, outside);
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 1u);
  EXPECT_FALSE(placed(2)) << "a dead stream places nothing";
  EXPECT_EQ(kept(), 0u);
}

// Acknowledged data cannot be dropped any more, so a Send is kept only if its receive is posted.
// proves: E-41, R-113, R-114, E-5, E-17
TEST_F(RxDetour, ASendIsKeptOnlyWhenItsReceiveIsPosted) {
  ASSERT_TRUE(p.up());
  sends(2);
  const auto a = p.send(at[1], joined({m[1], m[2]}));
  EXPECT_TRUE(a.back().sack.empty()) << "nothing of the segment (E-5)";
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(p.stats().iwarp.empty_rq_drops, 1u);
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 0u);
  p.send(at[1], m[1]);
  p.send(at[3], m[3]);
  EXPECT_EQ(p.stats().iwarp.empty_rq_drops, 2u);
  ASSERT_TRUE(p.post_receive(2, 2000, 900));
  ASSERT_TRUE(p.post_receive(3, 3000, 900));
  EXPECT_FALSE(p.pass(Duration::us(10)).empty()) << "the nudge";
  p.send(at[3], m[3]);
  p.send(at[2], m[2]);
  EXPECT_TRUE(p.receives().empty());
  p.send(at[0], m[0]);
  expect_all_delivered_once();
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
}

// The queue is empty when the gap closes: that segment waits, and kept data stays.
// proves: E-41, R-113
TEST_F(RxDetour, AnEmptyReceiveQueueInTheMiddleLosesNothing) {
  ASSERT_TRUE(p.up());
  sends(1);
  const Bytes w = p.write(8000, Bytes(50, 9));
  p.send(at[2], w);
  p.send(at[0], m[0]);
  p.send(at[1], m[1]);
  EXPECT_EQ(p.stats().iwarp.empty_rq_drops, 1u);
  EXPECT_EQ(p.rcv_nxt(), at[1]);
  EXPECT_NE(kept(), 0u);
  EXPECT_EQ(p.at(8000, 50), Bytes(50, 0));
  ASSERT_TRUE(p.post_receive(1, 1000, 900));
  p.send(at[1], m[1]);
  EXPECT_EQ(good_receives(p), 2u);
  EXPECT_EQ(p.at(8000, 50), Bytes(50, 9));
  EXPECT_EQ(p.rcv_nxt(), at[2] + w.size());
  EXPECT_EQ(kept(), 0u);
  EXPECT_TRUE(p.fast());
}

// proves: E-41, E-11
TEST_F(RxDetour, AFullPoolRefusesOnlyOutOfOrderData) {
  p.options.reassembly_pool = reassembly::Pool::kChunk;
  up();
  more(44);
  send(2);
  auto a = send(42);  // in another chunk
  ASSERT_EQ(a.size(), 1u);
  ASSERT_EQ(a[0].sack.size(), 1u);
  EXPECT_EQ(a[0].sack[0], Block(2 * kSize, 3 * kSize));
  send(0);
  EXPECT_TRUE(placed(0));
  send(1);
  EXPECT_TRUE(placed(1) && placed(2));
  for (std::size_t i = 3; i < 44; ++i) {
    send(i);
    EXPECT_TRUE(placed(i));
  }
  EXPECT_LE(p.stats().iwarp.bytes_detour, kSize);
  expect_nothing_happened();
}

// proves: E-41, E-10, R-96
TEST_F(RxDetour, TheHoleLimitAppliesOnADetour) {
  p.options.tcp.hole_limit = 1;
  up();
  send(1);
  const auto a = send(3);
  ASSERT_EQ(a.back().sack.size(), 1u);
  EXPECT_EQ(a.back().sack[0], Block(kSize, 2 * kSize));
  EXPECT_EQ(p.stats().iwarp.bytes_detour, kSize);
  for (const std::size_t i : {0, 2, 3}) send(i);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(placed(i));
  expect_nothing_happened();
}

// proves: E-41, E-45
TEST_F(RxDetour, NothingBeyondTheWindowIsKept) {
  p.options.tcp.receive_buffer = 2100;
  up();
  more(10);
  const tcp::Tcb& t = p.connection()->tcb;
  const std::uint64_t window = t.rcv.adv - t.rcv.holes.rcv_nxt();
  const std::uint64_t inside = window / kSize;
  ASSERT_GT(inside, 1u);
  Bytes all;
  for (std::size_t i = 1; i < fpdus.size(); ++i) testing::append(all, fpdus[i]);
  p.send(kSize, all);
  EXPECT_EQ(p.stats().iwarp.bytes_detour, (inside - 1) * kSize);
  EXPECT_LE(t.rcv.holes.highest(), t.rcv.adv);
  send(0);
  for (std::size_t i = 0; i < fpdus.size(); ++i) EXPECT_EQ(placed(i), i < inside) << i;
  expect_nothing_happened();
}

}  // namespace
}  // namespace urnic::test
