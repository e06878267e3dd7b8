// A FAST connection that places nothing out of order (`ooo_without_markers = store`): what lies
// beyond a gap takes the detour through the reassembly buffer (E-41).
#include "ddp_rdma/terminate.h"
#include "tests/engine/rx_path.h"

namespace urnic::test {
namespace {

using Block = std::pair<std::uint64_t, std::uint64_t>;

struct RxDetour : RxPath {
  RxDetour() { p.options.out_of_order = engine::Options::OutOfOrder::Store; }

  // So many Writes instead of four.
  void more(std::size_t n) {
    data.clear();
    fpdus.clear();
    prepare(n);
  }
  std::uint64_t kept() { return p.node().engine().reassembly_in_use(); }
  // What must hold whenever nothing was wrong: FAST, and no counter of the other roads has moved.
  void expect_nothing_happened() {
    EXPECT_TRUE(p.fast());
    const ConnectionStats s = p.stats();
    EXPECT_EQ(s.iwarp.bytes_slow, 0u);
    EXPECT_EQ(s.iwarp.downgrades, 0u);
    EXPECT_EQ(s.iwarp.upgrades, 0u);
    EXPECT_EQ(s.iwarp.recovery_attempts, 0u);
    EXPECT_EQ(s.iwarp.ddp.terminates_sent, 0u);
    EXPECT_EQ(s.iwarp.immediate_dup_acks, 0u);
  }
  // Four Sends, 100 to 103 octets, at `at` in the stream; `receives` for them at 1000 each.
  void sends(std::size_t receives = 4) {
    at = {0};
    for (std::uint64_t i = 0; i < 4; ++i) {
      if (i < receives) {
        ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
      }
      m.push_back(HandPeer::send_message(static_cast<std::uint32_t>(i + 1),
                                         Octets(100 + i, static_cast<std::uint8_t>(0x51 + i))));
      at.push_back(at.back() + m.back().size());
    }
  }
  void expect_all_delivered_once() {
    ASSERT_EQ(good_receives(p), 4u);
    for (std::uint64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(p.receives()[i].completion.wr_id, i);
      EXPECT_EQ(p.receives()[i].completion.byte_len, 100 + i);
      EXPECT_EQ(p.at(i * 1000, 100 + i), Octets(100 + i, static_cast<std::uint8_t>(0x51 + i)));
    }
  }
  std::vector<Octets> m;
  std::vector<std::uint64_t> at;
};

// proves: E-41, E-12
TEST_F(RxDetour, E41_WhatLiesBeyondAGapIsKeptReportedAndPlacedWhenTheGapCloses) {
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
TEST_F(RxDetour, E41_InOrderSegmentsAreCutThroughBesideADetour) {
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
TEST_F(RxDetour, E41_DeliveryGoesToTheNextGapAndNoFurther) {
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
TEST_F(RxDetour, E41_MessagesCompleteInOrderWhenTheirGapCloses) {
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

// A Read Request behind a gap is answered when the gap is closed.
// proves: E-41, R-91
TEST_F(RxDetour, E41_AReadRequestBehindAGapWaits) {
  up();
  std::fill(p.region.begin() + 5000, p.region.begin() + 5010, 0x77);
  p.send(kSize, p.read_request(1, 10, 5000));
  EXPECT_EQ(p.stats().verbs.read_requests_received, 0u);
  const auto a = send(0);
  EXPECT_EQ(p.stats().verbs.read_requests_received, 1u);
  std::size_t octets = 0;
  for (const Answer& x : a) octets += x.payload.size();
  EXPECT_EQ(octets, make_fpdu(Octets(14 + 10)).size());
}

// The sequence numbers wrap somewhere in the detour.
// proves: E-41
TEST_F(RxDetour, E41_AcrossTheWrapOfSequenceNumbers) {
  for (std::uint64_t i = 0; i <= 4; ++i) {
    HandPeer h;
    h.options.out_of_order = engine::Options::OutOfOrder::Store;
    h.iss = static_cast<std::uint32_t>(0u - 21 - i * kSize);
    ASSERT_TRUE(h.up());
    std::vector<Octets> f;
    for (std::uint64_t k = 0; k < 4; ++k) {
      f.push_back(h.write(k * 1000, Octets(kPayload, static_cast<std::uint8_t>(k + 1))));
    }
    h.send(3 * kSize, f[3]);
    h.send(kSize, f[1]);
    h.send(0, f[0]);
    h.send(2 * kSize, f[2]);
    EXPECT_EQ(h.rcv_nxt(), 4 * kSize);
    for (std::uint64_t k = 0; k < 4; ++k) {
      EXPECT_EQ(h.at(k * 1000, kPayload), Octets(kPayload, static_cast<std::uint8_t>(k + 1)));
    }
    EXPECT_TRUE(h.fast());
    EXPECT_EQ(h.stats().iwarp.bytes_slow, 0u);
  }
}

// ---- overlaps ----------------------------------------------------------------------------------

// proves: E-41, R-99
TEST_F(RxDetour, E41_AnOverlapAtRcvNxtIsCutThroughAndItsMessagesCountOnce) {
  ASSERT_TRUE(p.up());
  sends();
  p.send(at[1], m[1]);
  p.send(at[3], m[3]);
  p.send(at[0], joined({m[0], m[1], m[2]}));
  expect_all_delivered_once();
  EXPECT_EQ(p.rcv_nxt(), at[4]);
  EXPECT_EQ(kept(), 0u);
  const ConnectionStats s = p.stats();
  EXPECT_EQ(s.iwarp.bytes_fast + s.iwarp.bytes_detour, at[4]) << "every octet of the stream once";
  expect_nothing_happened();
}

// proves: E-41, R-99
TEST_F(RxDetour, E41_AnOverlapBeyondTheGapKeepsWhatIsNew) {
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
TEST_F(RxDetour, E41_AnOverlapFromBelowRcvNxtIsTakenFromThereOn) {
  ASSERT_TRUE(p.up());
  sends();
  p.send(at[0], m[0]);
  p.send(at[2], m[2]);
  ASSERT_EQ(good_receives(p), 1u);
  std::fill(p.region.begin(), p.region.begin() + 100, 0xcc);  // the consumer's again
  p.send(at[0], joined({m[0], m[1], m[2], m[3]}));
  EXPECT_EQ(p.at(0, 100), Octets(100, 0xcc));
  EXPECT_EQ(good_receives(p), 4u);
  EXPECT_EQ(p.at(1000, 101), Octets(101, 0x52));
  EXPECT_EQ(p.at(3000, 103), Octets(103, 0x54));
  EXPECT_EQ(kept(), 0u);
  expect_nothing_happened();
}

// ---- what is not kept --------------------------------------------------------------------------

// What was corrupted is refused while it can still be repaired (R-29 is not met).
// proves: E-41, R-25
TEST_F(RxDetour, E41_ASegmentWithAWrongCrcIsNotKept) {
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
TEST_F(RxDetour, E41_AViolationBeyondTheGapIsNotKeptAndTerminatesInOrder) {
  up();
  const Octets outside =
      make_fpdu(ddp::test::write_segment(p.stag, p.to(p.region.size() - 10), Octets(kPayload, 1)));
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

// What is acknowledged cannot be dropped any more, so a Send is kept only when its receive is
// there. proves: E-41, R-113, R-114, E-5, E-17
TEST_F(RxDetour, E41_ASendIsKeptOnlyWhenItsReceiveIsPosted) {
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

// The queue is empty when the gap is to be closed: that segment waits, what is kept stays.
// proves: E-41, R-113
TEST_F(RxDetour, E41_AnEmptyReceiveQueueInTheMiddleLosesNothing) {
  ASSERT_TRUE(p.up());
  sends(1);
  const Octets w = p.write(8000, Octets(50, 9));
  p.send(at[2], w);
  p.send(at[0], m[0]);
  p.send(at[1], m[1]);
  EXPECT_EQ(p.stats().iwarp.empty_rq_drops, 1u);
  EXPECT_EQ(p.rcv_nxt(), at[1]);
  EXPECT_NE(kept(), 0u);
  EXPECT_EQ(p.at(8000, 50), Octets(50, 0));
  ASSERT_TRUE(p.post_receive(1, 1000, 900));
  p.send(at[1], m[1]);
  EXPECT_EQ(good_receives(p), 2u);
  EXPECT_EQ(p.at(8000, 50), Octets(50, 9));
  EXPECT_EQ(p.rcv_nxt(), at[2] + w.size());
  EXPECT_EQ(kept(), 0u);
  EXPECT_TRUE(p.fast());
}

// proves: E-41, E-11
TEST_F(RxDetour, E41_WhenThePoolIsFullWhatIsOutOfOrderIsRefusedAndInOrderIsNot) {
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
TEST_F(RxDetour, E41_TheLimitOfHolesHoldsOnADetour) {
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
TEST_F(RxDetour, E41_NothingBeyondTheWindowIsKept) {
  p.options.tcp.receive_buffer = 2100;
  up();
  more(10);
  const tcp::Tcb& t = p.connection()->tcb;
  const std::uint64_t window = t.rcv.adv - t.rcv.holes.rcv_nxt();
  const std::uint64_t inside = window / kSize;
  ASSERT_GT(inside, 1u);
  Octets all;
  for (std::size_t i = 1; i < fpdus.size(); ++i) testing::append(all, fpdus[i]);
  p.send(kSize, all);
  EXPECT_EQ(p.stats().iwarp.bytes_detour, (inside - 1) * kSize);
  EXPECT_LE(t.rcv.holes.highest(), t.rcv.adv);
  send(0);
  for (std::size_t i = 0; i < fpdus.size(); ++i) EXPECT_EQ(placed(i), i < inside) << i;
  expect_nothing_happened();
}

// ---- the end of a detour that is not a closed gap
// ------------------------------------------------

// What is kept was not placed, so nothing of it has to come again.
// proves: E-41
TEST_F(RxDetour, E41_ADowngradeInTheMiddleOfADetourKeepsTheBuffer) {
  up(1);
  send(2);
  send_spoiled(0);
  ASSERT_TRUE(p.fast());
  const Octets head(fpdus[0].begin(), fpdus[0].begin() + 100);
  const auto a = p.send(0, head);
  ASSERT_FALSE(p.fast());
  ASSERT_FALSE(a.empty());
  EXPECT_EQ(a.back().ack, 100u);
  ASSERT_EQ(a.back().sack.size(), 1u) << "still reported";
  EXPECT_EQ(a.back().sack[0], Block(2 * kSize, 3 * kSize));
  p.send(100, Octets(fpdus[0].begin() + 100, fpdus[0].end()));
  EXPECT_TRUE(placed(0));
  send(1);
  EXPECT_EQ(p.rcv_nxt(), 3 * kSize);
  EXPECT_TRUE(placed(1) && placed(2));
  send(3);
  EXPECT_TRUE(placed(3));
  const ConnectionStats s = p.stats();
  EXPECT_EQ(s.iwarp.downgrades, 1u);
  EXPECT_EQ(s.iwarp.bytes_detour, kSize);
  EXPECT_EQ(s.iwarp.bytes_slow, 3 * kSize);
  EXPECT_EQ(s.iwarp.ddp.terminates_sent, 0u);
  EXPECT_EQ(kept(), 0u);
}

// An FPDU that is part of two others, as only a peer can make it that wants to: the chain of FPDUs
// ends inside it.
struct Straddling {
  Octets a, b, false_one;
  std::uint64_t false_at = 0;
};
Straddling straddling(HandPeer& p) {
  Straddling s;
  // The false one begins 40 octets before the end of `a`, and ends inside the payload of `b`.
  Octets pa(200, 0xaa), pb(200, 0xbb);
  const std::size_t length = 40 - 2 + 2 + 14 + 50;  // ULPDU up to some octet of b's payload
  const std::size_t head = pa.size() - (40 - 6);    // `a` ends with padding (none) and 4 of CRC
  store_be16(pa.data() + head - 2 + 0, static_cast<std::uint16_t>(length));
  const Octets w = ddp::test::write_segment(p.stag, p.to(9000), Octets(20, 0));
  std::copy(w.begin(), w.begin() + 14, pa.begin() + static_cast<std::ptrdiff_t>(head));
  s.a = p.write(0, pa);
  s.b = p.write(1000, pb);
  Octets both = joined({s.a, s.b});
  s.false_at = 2 + 14 + head - 2;
  const Octets ulpdu(both.begin() + static_cast<std::ptrdiff_t>(s.false_at + 2),
                     both.begin() + static_cast<std::ptrdiff_t>(s.false_at + 2 + length));
  s.false_one = make_fpdu(ulpdu);
  // Its CRC and padding are octets of b's payload.
  const std::size_t tail = s.false_at + 2 + length - s.a.size() - 16;
  std::copy(s.false_one.begin() + static_cast<std::ptrdiff_t>(2 + length), s.false_one.end(),
            pb.begin() + static_cast<std::ptrdiff_t>(tail));
  s.b = p.write(1000, pb);
  return s;
}

// proves: E-41
TEST_F(RxDetour, E41_KeptOctetsThatAreNoFpdusDowngradeWithTheBufferAsItIs) {
  ASSERT_TRUE(p.up());
  const Straddling s = straddling(p);
  const Octets both = joined({s.a, s.b});
  ASSERT_TRUE(std::equal(s.false_one.begin(), s.false_one.end(),
                         both.begin() + static_cast<std::ptrdiff_t>(s.false_at)));
  p.send(s.false_at, s.false_one);
  ASSERT_EQ(p.stats().iwarp.bytes_detour, s.false_one.size()) << "it looks like one";
  EXPECT_TRUE(p.untouched());
  p.send(0, s.a);
  EXPECT_EQ(p.at(0, 100), Octets(100, 0xaa));
  EXPECT_FALSE(p.fast()) << "RCV.NXT is inside an FPDU";
  EXPECT_EQ(p.stats().iwarp.downgrades, 1u);
  const std::uint64_t got = s.false_at + s.false_one.size();
  EXPECT_EQ(p.rcv_nxt(), got);
  p.send(got, Octets(both.begin() + static_cast<std::ptrdiff_t>(got), both.end()));
  EXPECT_EQ(p.rcv_nxt(), both.size());
  EXPECT_EQ(p.at(1000, 20), Octets(20, 0xbb));
  EXPECT_EQ(p.at(9000, 20), Octets(20, 0)) << "the false one was never placed";
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
  EXPECT_EQ(kept(), 0u);
}

// ---- an embedded FPDU (E-12)
// ---------------------------------------------------------------------

// An application's payload holds a whole FPDU with a good CRC, and a box on the way cuts the stream
// there. What is behind the box is only as safe as the setting.
struct Embedded : RxDetour {
  Octets inner, outer;
  std::uint64_t inner_at = 0;
  void make() {
    inner = p.write(5000, Octets(60, 0xee));
    Octets payload = testing::random_octets(rng, 400);
    std::copy(inner.begin(), inner.end(), payload.begin() + 100);
    inner_at = kSize + 2 + 14 + 100;
    outer = p.write(1000, payload);
  }
};

// proves: E-12
TEST_F(Embedded, E12_PlaceIsFooledAndTheSeamShowsIt) {
  p.options.out_of_order = engine::Options::OutOfOrder::Place;
  up();
  make();
  p.send(inner_at, inner);
  EXPECT_EQ(p.at(5000, 60), Octets(60, 0xee)) << "believed: placed where the application said";
  send(0);
  EXPECT_TRUE(p.fast());
  p.send(kSize, outer);
  EXPECT_FALSE(p.fast()) << "the chain of FPDUs misses the block's edge";
  EXPECT_EQ(p.stats().iwarp.downgrades, 1u);
  EXPECT_EQ(p.stats().iwarp.reasons[static_cast<std::size_t>(fastpath::Reason::Seam)], 1u);
  EXPECT_EQ(p.rcv_nxt(), kSize + outer.size()) << "and the block is forgotten";
  EXPECT_EQ(p.at(1000, 400), Octets(outer.begin() + 16, outer.begin() + 416));
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
}

// A Send that never was is not delivered either.
// proves: E-12
TEST_F(Embedded, E12_AnEmbeddedSendIsUndoneByTheDowngrade) {
  p.options.out_of_order = engine::Options::OutOfOrder::Place;
  up();
  ASSERT_TRUE(p.post_receive(1, 20000, 900));
  make();
  inner = HandPeer::send_message(1, Octets(60, 0xee));
  Octets payload(400, 3);
  std::copy(inner.begin(), inner.end(), payload.begin() + 100);
  outer = p.write(1000, payload);
  p.send(inner_at, inner);
  send(0);
  p.send(kSize, outer);
  EXPECT_TRUE(p.receives().empty());
  p.send(kSize + outer.size(), HandPeer::send_message(1, Octets(50, 1)));
  ASSERT_EQ(good_receives(p), 1u);
  EXPECT_EQ(p.receives()[0].completion.byte_len, 50u);
  EXPECT_EQ(p.at(20000, 50), Octets(50, 1));
}

// proves: E-12, E-41
TEST_F(Embedded, E12_StoreIsNotFooled) {
  up();
  make();
  p.send(inner_at, inner);
  EXPECT_EQ(p.stats().iwarp.bytes_detour, inner.size()) << "octets of the stream they are";
  send(0);
  p.send(kSize, outer);
  EXPECT_EQ(p.rcv_nxt(), kSize + outer.size());
  EXPECT_EQ(p.at(1000, 400), Octets(outer.begin() + 16, outer.begin() + 416));
  EXPECT_EQ(p.at(5000, 60), Octets(60, 0)) << "never placed";
  EXPECT_EQ(kept(), 0u);
  expect_nothing_happened();
}

// Out of order one of two segments that overlap inside an FPDU lies: dropped as any bad seam, and
// counted; when it is at RCV.NXT it is the truth.
// proves: E-12, E-41
TEST_F(Embedded, E41_ABadSeamBeyondTheGapIsDroppedAsAnyOther) {
  up();
  make();
  p.send(inner_at, inner);
  p.send(kSize, outer);
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 1u);
  EXPECT_EQ(p.stats().iwarp.bytes_detour, inner.size());
  send(0);
  p.send(kSize, outer);
  EXPECT_EQ(p.at(1000, 400), Octets(outer.begin() + 16, outer.begin() + 416));
  EXPECT_EQ(p.at(5000, 60), Octets(60, 0));
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(kept(), 0u);
}

// ---- the end of the stream ---------------------------------------------------------------------

// proves: E-41
TEST_F(RxDetour, E41_AFinBehindAGapComesAfterWhatWasKept) {
  up();
  p.burst({{kSize, fpdus[1], false, tcp::kAck | tcp::kFin}});
  EXPECT_FALSE(p.connection()->fin_received);
  EXPECT_FALSE(placed(1));
  send(0);
  EXPECT_TRUE(placed(0) && placed(1));
  ASSERT_NE(p.connection(), nullptr);
  EXPECT_TRUE(p.connection()->fin_received);
  EXPECT_TRUE(p.connection()->failure.empty()) << p.connection()->failure;
  EXPECT_EQ(kept(), 0u);
}

// proves: E-41
TEST_F(RxDetour, E41_ATerminateBehindAGapEndsTheStreamInOrder) {
  up();
  std::uint8_t t[ddp::kMaxTerminate];
  const std::uint32_t n = ddp::build_terminate(ddp::Violation::TaggedBounds, {}, t);
  const Octets terminate = make_fpdu({t, n});
  p.send(kSize, terminate);
  send(3);
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_received, 0u);
  send(0);
  EXPECT_TRUE(placed(0));
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_received, 1u);
  EXPECT_NE(p.qp->state, verbs::QpState::Rts);
  EXPECT_EQ(kept(), 0u) << "what is behind it is forgotten";
}

// proves: E-41, E-11
TEST_F(RxDetour, E41_AConnectionThatEndsInADetourGivesItsMemoryBack) {
  up();
  send(2);
  ASSERT_NE(kept(), 0u);
  p.burst({{0, {}, false, tcp::kRst}});
  EXPECT_EQ(kept(), 0u);
}

}  // namespace
}  // namespace urnic::test
