// The receive path: each rule of the specification for one segment, observed in memory, completions
// and ACKs.
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

// ---- types and alignment -----------------------------------------------------------------------

// proves: R-1
TEST_F(RxPath, TheConnectionHasTheConsumersTypeAndReportsIt) {
  ASSERT_TRUE(
      p.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Slow; }));
  EXPECT_FALSE(p.stats().iwarp.fast);
  EXPECT_FALSE(p.stats().iwarp.slow_reason.empty());
  HandPeer other;
  ASSERT_TRUE(
      other.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Fast; }));
  EXPECT_TRUE(other.stats().iwarp.fast);
}

// proves, T-3, T-7
TEST_F(RxPath, AlignedValidSegmentsAreCutThroughAndAcknowledged) {
  up();
  auto a = send(0);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].pure_ack());
  EXPECT_EQ(a[0].ack, kSize);
  EXPECT_TRUE(placed(0));
  a = p.send(kSize, joined({fpdus[1], fpdus[2], fpdus[3]}));
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 4 * kSize);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(placed(i));
  const ConnectionStats s = p.stats();
  EXPECT_EQ(s.iwarp.bytes_fast, 4 * kSize);
  EXPECT_EQ(s.iwarp.bytes_slow, 0u);
  EXPECT_EQ(s.iwarp.bytes_copied, 4u * kPayload) << "one copy of each payload byte";
  EXPECT_EQ(p.node().engine().iwarp().state().pool.in_use(), 0u);
}

// proves, T-1
TEST_F(RxPath, EverythingOnSlowGoesThroughTheReassemblyBuffer) {
  up_slow();
  for (std::size_t i = 0; i < 4; ++i) {
    const auto a = send(i);
    ASSERT_EQ(a.size(), 1u);
    EXPECT_EQ(a[0].ack, (i + 1) * kSize);
    EXPECT_TRUE(placed(i));
    EXPECT_FALSE(p.fast());
  }
  const ConnectionStats s = p.stats();
  EXPECT_EQ(s.iwarp.bytes_slow, 4 * kSize);
  EXPECT_EQ(s.iwarp.bytes_fast, 0u);
  EXPECT_EQ(s.iwarp.bytes_copied, 4 * (kSize + kPayload)) << "into the buffer and out of it";
}

// proves: R-3
TEST_F(RxPath, AlignedSegmentsOfADowngradedConnectionAreStored) {
  up(1);  // N of the upgrade is 64
  make_downgraded();
  for (std::size_t i = 1; i < 4; ++i) send(i);
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().iwarp.bytes_fast, 0u);
  EXPECT_EQ(p.stats().iwarp.bytes_slow, 4 * kSize);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(placed(i));
}

// proves: R-4
TEST_F(RxPath, MisalignedSegmentsAreNeverCutThrough) {
  up(1000);
  Bytes all;
  for (const Bytes& f : fpdus) testing::append(all, f);
  // Cut inside an FPDU, in order and out of order; also a segment that begins inside one and
  // contains whole ones after it.
  const auto piece = [&](std::size_t from, std::size_t to) {
    return Bytes(all.begin() + static_cast<std::ptrdiff_t>(from),
                 all.begin() + static_cast<std::ptrdiff_t>(to));
  };
  p.send(0, piece(0, kSize - 1));
  p.send(0, piece(0, kSize + 1));
  p.send(0, piece(0, 1));
  p.send(10, piece(10, kSize));
  p.send(kSize - 4, piece(kSize - 4, 3 * kSize));
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.stats().iwarp.bytes_fast, 0u);
  EXPECT_EQ(p.rcv_nxt(), 0u);
}

// proves: R-5
TEST_F(RxPath, NothingIsAcknowledgedBeforeItsCrcIsGood) {
  up();
  for (int i = 0; i < 3; ++i) {
    for (const Answer& a : send_spoiled(0)) EXPECT_EQ(a.ack, 0u);
  }
  const auto a = send(0);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, kSize);
}

// proves
TEST_F(RxPath, MessagesAreDeliveredOnlyWhenAllBeforeThemIsPlaced) {
  for (const bool fast : {true, false}) {
    SCOPED_TRACE(fast ? "FAST" : "SLOW");
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) {
      c.context.initiated_as = fast ? ConnectionType::Fast : ConnectionType::Slow;
    }));
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(h.post_receive(i, i * 1000, 900));
    const Bytes a = HandPeer::send_message(1, Bytes(100, 1));
    const Bytes b1 = HandPeer::send_message(2, Bytes(200, 2), 0, false);
    const Bytes b2 = HandPeer::send_message(2, Bytes(50, 3), 200, true);
    const Bytes c = HandPeer::send_message(3, Bytes(70, 4));
    const std::uint64_t at_b1 = a.size(), at_b2 = at_b1 + b1.size(), at_c = at_b2 + b2.size();
    h.send(at_c, c);
    h.send(at_b2, b2);
    EXPECT_TRUE(h.receives().empty());
    h.send(0, a);
    ASSERT_EQ(good_receives(h), 1u);
    EXPECT_EQ(h.receives()[0].completion.byte_len, 100u);
    h.send(at_b1, b1);
    ASSERT_EQ(good_receives(h), 3u);
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(h.receives()[i].completion.wr_id, i);
    EXPECT_EQ(h.receives()[1].completion.byte_len, 250u);
    EXPECT_EQ(h.at(1000, 250), joined({Bytes(200, 2), Bytes(50, 3)}));
  }
}

// proves
TEST_F(RxPath, OutOfOrderSegmentsAreInMemoryBeforeTheGapIsFilled) {
  up();
  const auto a = send(2);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 0u);
  ASSERT_EQ(a[0].sack.size(), 1u);
  EXPECT_EQ(a[0].sack[0], std::make_pair(2 * kSize, 3 * kSize));
  EXPECT_TRUE(placed(2));
  EXPECT_EQ(p.rcv_nxt(), 0u);
  EXPECT_EQ(p.stats().iwarp.bytes_slow, 0u);
}

// proves, H-8, H-9
TEST_F(RxPath, ReceivedBytesAreNeverPlacedAgain) {
  for (const bool fast : {true, false}) {
    SCOPED_TRACE(fast ? "FAST" : "SLOW");
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) {
      c.context.initiated_as = fast ? ConnectionType::Fast : ConnectionType::Slow;
    }));
    const Bytes one = h.write(0, Bytes(300, 1)), two = h.write(1000, Bytes(300, 2)),
                far = h.write(2000, Bytes(300, 3));
    h.send(0, one);
    h.send(3 * one.size(), far);
    // The buffers belong to the consumer again.
    std::fill(h.region.begin(), h.region.end(), 0xcc);
    EXPECT_EQ(h.send(0, one).size(), 1u) << "a duplicate is acknowledged";
    h.send(3 * one.size(), far);
    h.send(0, joined({one, two}));
    EXPECT_EQ(h.at(0, 300), Bytes(300, 0xcc));
    EXPECT_EQ(h.at(1000, 300), Bytes(300, 2)) << "the new part of an overlap is taken";
    if (fast) {
      EXPECT_EQ(h.at(2000, 300), Bytes(300, 0xcc)) << "placed before, though not delivered";
    }
    EXPECT_EQ(h.rcv_nxt(), 2 * one.size());
  }
}

// proves: R-99, H-9
TEST_F(RxPath, MessagesOfADuplicateOrAnOverlapCountOnce) {
  ASSERT_TRUE(p.up());
  std::vector<Bytes> m;
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
    m.push_back(HandPeer::send_message(static_cast<std::uint32_t>(i + 1), Bytes(100, 7)));
  }
  const std::uint64_t n = m[0].size();
  p.send(2 * n, m[2]);
  p.send(2 * n, m[2]);
  p.send(n, joined({m[1], m[2], m[3]}));
  p.send(n, joined({m[1], m[2], m[3]}));
  EXPECT_TRUE(p.receives().empty());
  p.send(0, joined({m[0], m[1]}));
  ASSERT_EQ(good_receives(p), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(p.receives()[i].completion.wr_id, i);
}

// ---- OutLogic ----------------------------------------------------------------------------------

// proves: E-6
TEST_F(RxPath, ATaggedSegmentOutsideItsRegionIsNotPlacedAndTerminatesInOrder) {
  up();
  const Bytes outside =
      make_fpdu(ddp::test::write_segment(p.stag, p.to(p.region.size() - 10), Bytes(kPayload, 1)));
  // Out of order: dropped, without a Terminate yet.
  p.send(kSize, outside);
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
  EXPECT_EQ(p.holes(), 0u);
  send(0);
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
  p.send(kSize, outside);
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 1u);
  EXPECT_EQ(p.at(p.region.size() - 10, 10), Bytes(10, 0));
}

// proves: R-88
TEST_F(RxPath, AnOutOfOrderSendGoesToTheReceiveOfItsMsn) {
  ASSERT_TRUE(p.up());
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
  p.send(5000, HandPeer::send_message(3, Bytes(100, 9), 50, true));
  EXPECT_EQ(p.at(2050, 100), Bytes(100, 9));
  EXPECT_EQ(p.at(0, 2050), Bytes(2050, 0));
}

// proves
TEST_F(RxPath, NoReadResponseLeavesBeforeItsHoleCloses) {
  up();
  const Bytes r1 = p.read_request(1, 10, 5000), r2 = p.read_request(2, 20, 5000);
  p.send(2 * kSize + r1.size(), r2);
  p.send(2 * kSize, r1);
  send(1);
  EXPECT_EQ(p.stats().verbs.read_responses_sent, 0u);
  EXPECT_EQ(p.stats().verbs.read_requests_received, 0u);
  const auto a = send(0);
  EXPECT_EQ(p.stats().verbs.read_requests_received, 2u);
  std::size_t bytes = 0;
  for (const Answer& x : a) bytes += x.payload.size();
  const std::size_t both = make_fpdu(Bytes(14 + 10)).size() + make_fpdu(Bytes(14 + 20)).size();
  EXPECT_EQ(bytes, both) << "both responses";
}

// proves: R-94
TEST_F(RxPath, AWriteReportsNothing) {
  up();
  ASSERT_TRUE(p.post_receive(1, 20000, 100));
  send(1);
  send(0);
  p.pass(Duration::ms(10));
  EXPECT_TRUE(p.receives().empty());
  EXPECT_TRUE(p.sends().empty());
  EXPECT_TRUE(placed(0) && placed(1));
}

// A connection that stays SLOW: FPDUs that were whole in their segment were validated there, and
// their CRC is not computed again during extraction. FPDUs in two parts were not.
// proves: E-20
TEST_F(RxPath, ACrcIsComputedOnce) {
  up_slow();
  const auto extract_spoiled = [&](std::size_t i) {
    reassembly::Pool pool(1 << 20);
    reassembly::Buffer buffer(&pool, 1 << 20);
    const StreamOffset end = p.connection()->buffer.read_position();
    buffer.reset(StreamOffset(end.value() - kSize));
    EXPECT_TRUE(buffer.store(buffer.read_position(), spoiled(i), true));
    reassembly::Extractor extractor = p.connection()->extractor;
    ByteView ulpdu;
    std::uint32_t length = 0;
    return extractor.next(buffer, end, &ulpdu, &length);
  };
  send(0);
  ASSERT_TRUE(placed(0));
  EXPECT_EQ(extract_spoiled(0), reassembly::Extracted::Fpdu) << "its CRC was computed before";
  const auto cut = fpdus[1].begin() + 100;
  p.send(kSize, Bytes(fpdus[1].begin(), cut));
  p.send(kSize + 100, Bytes(cut, fpdus[1].end()));
  ASSERT_TRUE(placed(1));
  EXPECT_EQ(extract_spoiled(1), reassembly::Extracted::BadCrc);
}

}  // namespace
}  // namespace urnic::test
