// The receive path: dropped segments, and the duplicate ACKs that report them.
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

// ---- drops -------------------------------------------------------------------------------------

// proves, T-9
TEST_F(RxPath, ASegmentWithOneBadFpduIsDroppedWhole) {
  up();
  const Bytes broken[] = {joined({fpdus[0], spoiled(1), fpdus[2]}),
                          joined({fpdus[0], fpdus[1], spoiled(2)}),
                          joined({fpdus[0], spoiled(1), Bytes{0xff, 0xff, 1, 2}})};
  for (const Bytes& b : broken) {
    for (const Answer& a : p.send(0, b)) {
      EXPECT_EQ(a.ack, 0u);
      EXPECT_TRUE(a.sack.empty());
    }
    EXPECT_TRUE(p.untouched()) << "not even the valid FPDU in front";
    EXPECT_TRUE(p.fast());
    EXPECT_EQ(p.rcv_nxt(), 0u);
  }
  EXPECT_EQ(p.stats().iwarp.bytes_fast, 0u);
  EXPECT_EQ(p.connection()->context.recovery_attempts, 3u);
}

// proves: R-25
TEST_F(RxPath, ADroppedSegmentChangesNothing) {
  up();
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(p.post_receive(i, 20000 + i * 1000, 900));
  send(3);
  const ConnectionStats before = p.stats();
  const auto a = send_spoiled(1);
  for (const Answer& x : a) {
    EXPECT_EQ(x.ack, 0u);
    ASSERT_EQ(x.sack.size(), 1u);
    EXPECT_EQ(x.sack[0], std::make_pair(3 * kSize, 4 * kSize));
  }
  EXPECT_EQ(p.holes(), 1u);
  EXPECT_EQ(p.rcv_nxt(), 0u);
  const ConnectionStats after = p.stats();
  EXPECT_EQ(after.verbs.payload_placed, before.verbs.payload_placed);
  EXPECT_EQ(after.iwarp.bytes_fast, before.iwarp.bytes_fast);
  EXPECT_EQ(after.iwarp.holes_opened, before.iwarp.holes_opened);
  EXPECT_EQ(p.at(1000, kPayload), Bytes(kPayload, 0));
  EXPECT_TRUE(p.receives().empty());
}

// proves
TEST_F(RxPath, TheGoodRetransmissionOfADroppedSegmentIsCutThrough) {
  up();
  send_spoiled(0);
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.rcv_nxt(), 0u);
  send(0);
  EXPECT_TRUE(placed(0));
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.stats().iwarp.bytes_fast, kSize);
  EXPECT_EQ(p.stats().iwarp.bytes_slow, 0u);
}

// proves
TEST_F(RxPath, AMisalignedPeerIsServedAfterADowngrade) {
  up(3);
  Bytes all;
  for (const Bytes& f : fpdus) testing::append(all, f);
  std::size_t sent = 0;
  for (std::size_t at = 0; at < all.size(); at = p.rcv_nxt()) {
    ASSERT_LT(++sent, 100u) << "no end";
    p.send(at, Bytes(all.begin() + static_cast<std::ptrdiff_t>(at),
                     all.begin() + static_cast<std::ptrdiff_t>(std::min(at + 100, all.size()))));
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(placed(i));
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 3u) << "exactly so many drops";
  EXPECT_EQ(p.stats().iwarp.downgrades, 1u);
  EXPECT_EQ(p.stats().iwarp.bytes_slow, all.size());
}

// proves: R-29
TEST_F(RxPath, ACrcErrorInSlowDataTerminates) {
  up_slow();
  send(0);
  send_spoiled(1);
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 1u);
  EXPECT_FALSE(placed(1));
  EXPECT_NE(p.qp->state, verbs::QpState::Rts);
}

// proves, L-1
TEST_F(RxPath, TheRecoveryLimitIsTheConnectionsOwn) {
  for (const std::uint32_t max : {1u, 2u, 5u}) {
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) {
      c.context.max_recovery_attempts = max;
      c.context.max_same_segment = 0;
    }));
    Bytes bad = h.write(0, Bytes(100, 1));
    bad[50] ^= 1;
    std::uint32_t drops = 0;
    while (h.fast() && drops < 50) {
      const auto a = h.send(0, bad);
      if (h.fast()) {
        ++drops;
        EXPECT_EQ(h.rcv_nxt(), 0u);
      } else {
        EXPECT_EQ(h.stats().iwarp.bytes_slow, bad.size()) << "the next one is stored";
        ASSERT_FALSE(a.empty());
      }
    }
    EXPECT_EQ(drops, max);
  }
}

// A length field is corrupted, and the limit is 0 as in Fig 3 without limited recovery.
// proves, L-7
TEST_F(RxPath, ACorruptedLengthWithoutRecoveryEndsInTermination) {
  up(0);
  Bytes bad = fpdus[0];
  bad[1] ^= 0x80;
  p.send(0, bad);
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().iwarp.bytes_slow, kSize);
  for (std::size_t i = 1; i < 4; ++i) send(i);
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 1u);
  EXPECT_TRUE(p.untouched());
  EXPECT_NE(p.qp->state, verbs::QpState::Rts);
}

// ---- immediate duplicate ACK, section 7 --------------------------------------------------------

// proves
TEST_F(RxPath, ADropInOrderSendsExactlyOneDuplicateAckAtOnce) {
  up();
  send(0);
  for (int i = 0; i < 3; ++i) {
    const auto a = send_spoiled(1);
    ASSERT_EQ(a.size(), 1u) << "one, without any further arrival";
    EXPECT_TRUE(a[0].pure_ack());
    EXPECT_EQ(a[0].ack, kSize) << "RCV.NXT, unchanged";
    EXPECT_TRUE(a[0].sack.empty());
  }
  EXPECT_EQ(p.stats().iwarp.immediate_dup_acks, 3u);
}

// proves
TEST_F(RxPath, ADropOutOfOrderSendsOneAndTheNextArrivalTheSecond) {
  up();
  auto a = send_spoiled(1);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 0u);
  EXPECT_TRUE(a[0].sack.empty()) << "what was dropped is not reported";
  const std::uint16_t window = a[0].seg.window;
  a = send(2);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 0u) << "the second duplicate ACK";
  EXPECT_EQ(a[0].seg.window, window) << "a duplicate has the same window (RFC 5681)";
  EXPECT_EQ(a[0].sack[0], std::make_pair(2 * kSize, 3 * kSize));
  a = send_spoiled(3);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].sack.size(), 1u);
  EXPECT_EQ(a[0].sack[0], std::make_pair(2 * kSize, 3 * kSize));
}

// proves: R-63, E-7
TEST_F(RxPath, APendingAckGoesBeforeTheDuplicateAck) {
  up();
  const auto a = p.burst({{0, fpdus[0]}, {kSize, spoiled(1)}, {2 * kSize, fpdus[2]}});
  ASSERT_EQ(a.size(), 3u);
  for (const Answer& x : a) EXPECT_EQ(x.ack, kSize);
  EXPECT_TRUE(a[0].sack.empty()) << "owed for segment 0";
  EXPECT_TRUE(a[1].sack.empty()) << "the duplicate for the drop";
  EXPECT_EQ(a[2].sack.size(), 1u);
}

// An error in a segment that does not begin or end with an FPDU may come from how it was cut.
// proves: E-42
TEST_F(RxPath, AWrongCrcIsNamedAndAWrongLengthIsNot) {
  p.options.tcp.name_corrupted = p.names_corrupted = true;
  up();
  send(0);
  auto a = send_spoiled(1);
  ASSERT_EQ(a.size(), 1u);
  ASSERT_TRUE(a[0].seg.opts.has_corrupted);
  EXPECT_EQ(a[0].seg.opts.corrupted.begin, a[0].seg.ack);
  EXPECT_EQ(a[0].seg.opts.corrupted.end, a[0].seg.ack + static_cast<std::uint32_t>(kSize));
  a = p.send(kSize, Bytes(fpdus[1].begin(), fpdus[1].begin() + 100));
  ASSERT_EQ(a.size(), 1u);
  EXPECT_FALSE(a[0].seg.opts.has_corrupted);
  a = send(1);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_FALSE(a[0].seg.opts.has_corrupted);
  EXPECT_EQ(a[0].ack, 2 * kSize);
}

// proves: E-7
TEST_F(RxPath, InOrderDataIsAcknowledgedOncePerBurst) {
  up();
  const auto a = p.burst({{0, fpdus[0]}, {kSize, fpdus[1]}, {2 * kSize, fpdus[2]}});
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 3 * kSize);
}

// The caller reads the clock again only after a burst that may have taken some time.
TEST_F(RxPath, ABurstOfMoreThanAFewFramesIsReportedAsLong) {
  up();
  p.burst({{0, fpdus[0]}});
  EXPECT_FALSE(p.took_long);
  p.burst({{0, fpdus[0]}, {kSize, fpdus[1]}, {2 * kSize, fpdus[2]}, {3 * kSize, fpdus[3]}});
  EXPECT_TRUE(p.took_long) << "these, and an ACK";
}

// proves, H-11, E-10
TEST_F(RxPath, SegmentsThatTcpRefusesAreNotUlpDrops) {
  p.options.tcp.hole_limit = 1;
  up();
  // A wrong TCP checksum: no reply at all, no effect.
  EXPECT_TRUE(p.burst({{0, fpdus[0], true}}).empty());
  EXPECT_EQ(p.rcv_nxt(), 0u);
  // Not for this connection: at most a reset to the sender.
  for (const Answer& a : p.burst({{0, fpdus[0], false, tcp::kAck, 41000}})) {
    EXPECT_TRUE(a.seg.has(tcp::kRst));
    EXPECT_EQ(a.seg.dst_port, 41000);
  }
  // One hole too many: TCP's ordinary duplicate ACK.
  send(1);
  const auto a = send(3);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].sack.size(), 1u);
  EXPECT_FALSE(placed(3));
  EXPECT_EQ(p.holes(), 1u);
  EXPECT_EQ(p.stats().iwarp.immediate_dup_acks, 0u);
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 0u);
  EXPECT_TRUE(p.fast());
}

// proves: R-65
TEST_F(RxPath, WithTheOptionOffADropIsSilent) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) { c.context.immediate_dup_ack = false; }));
  prepare();
  EXPECT_TRUE(send_spoiled(0).empty());
  EXPECT_TRUE(send_spoiled(2).empty());
  const auto a = send(1);
  ASSERT_EQ(a.size(), 1u) << "the ordinary duplicate ACK of the next arrival";
  EXPECT_EQ(a[0].ack, 0u);
}

// proves
TEST_F(RxPath, TheAckGoesWithEachBoundedDropNotWithTheDowngrade) {
  up(2);
  send(0);
  for (int i = 0; i < 2; ++i) {
    const auto a = send_spoiled(1);
    ASSERT_EQ(a.size(), 1u);
    EXPECT_EQ(a[0].ack, kSize);
  }
  EXPECT_EQ(p.stats().iwarp.immediate_dup_acks, 2u);
  const Bytes part(fpdus[1].begin(), fpdus[1].begin() + 100);
  const auto a = p.send(kSize, part);
  EXPECT_FALSE(p.fast());
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, kSize + 100) << "stored and acknowledged";
  EXPECT_EQ(p.stats().iwarp.immediate_dup_acks, 2u);
}

// proves: E-4
TEST_F(RxPath, TheAcknowledgementInADroppedSegmentCounts) {
  up();
  const verbs::Sge sge{p.to(0), 100, p.stag};
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Send;
  wr.flags = verbs::kSignaled;
  wr.sges = {&sge, 1};
  send(0);  // the engine may send after the first FPDU
  ASSERT_EQ(p.node().post_send(*p.qp, wr, p.now), verbs::Post::Ok);
  p.pass(Duration::us(10));
  ASSERT_NE(p.connection()->tcb.snd.una, p.connection()->tcb.snd.nxt);
  send_spoiled(1);
  EXPECT_EQ(p.connection()->tcb.snd.una, p.connection()->tcb.snd.nxt);
}

}  // namespace
}  // namespace urnic::test
