// Ends of a detour other than a closed gap: a downgrade, bytes that are not FPDUs, the end of the
// stream (E-41).
#include "ddp_rdma/terminate.h"
#include "tests/iwarp/rx_detour.h"

namespace urnic::test {
namespace {

using Block = std::pair<std::uint64_t, std::uint64_t>;

// Kept bytes were not placed, so none of them must be sent again.
// proves: E-41
TEST_F(RxDetour, ADowngradeInTheMiddleOfADetourKeepsTheBuffer) {
  up(1);
  send(2);
  send_spoiled(0);
  ASSERT_TRUE(p.fast());
  const Bytes head(fpdus[0].begin(), fpdus[0].begin() + 100);
  const auto a = p.send(0, head);
  ASSERT_FALSE(p.fast());
  ASSERT_FALSE(a.empty());
  EXPECT_EQ(a.back().ack, 100u);
  ASSERT_EQ(a.back().sack.size(), 1u) << "still reported";
  EXPECT_EQ(a.back().sack[0], Block(2 * kSize, 3 * kSize));
  p.send(100, Bytes(fpdus[0].begin() + 100, fpdus[0].end()));
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

// An FPDU that is part of two others, which only an attacker makes: the chain of FPDUs ends inside
// it.
struct Straddling {
  Bytes a, b, false_one;
  std::uint64_t false_at = 0;
};
Straddling straddling(HandPeer& p) {
  Straddling s;
  // The false FPDU begins 40 bytes before the end of `a`, and ends inside the payload of `b`.
  Bytes pa(200, 0xaa), pb(200, 0xbb);
  const std::size_t length = 40 - 2 + 2 + 14 + 50;  // ULPDU up to some byte of b's payload
  const std::size_t head = pa.size() - (40 - 6);    // `a` ends with padding (none) and 4 of CRC
  store_be16(pa.data() + head - 2 + 0, static_cast<std::uint16_t>(length));
  const Bytes w = ddp::test::write_segment(p.stag, p.to(9000), Bytes(20, 0));
  std::copy(w.begin(), w.begin() + 14, pa.begin() + static_cast<std::ptrdiff_t>(head));
  s.a = p.write(0, pa);
  s.b = p.write(1000, pb);
  Bytes both = joined({s.a, s.b});
  s.false_at = 2 + 14 + head - 2;
  const Bytes ulpdu(both.begin() + static_cast<std::ptrdiff_t>(s.false_at + 2),
                    both.begin() + static_cast<std::ptrdiff_t>(s.false_at + 2 + length));
  s.false_one = make_fpdu(ulpdu);
  // Its CRC and padding are bytes of b's payload.
  const std::size_t tail = s.false_at + 2 + length - s.a.size() - 16;
  std::copy(s.false_one.begin() + static_cast<std::ptrdiff_t>(2 + length), s.false_one.end(),
            pb.begin() + static_cast<std::ptrdiff_t>(tail));
  s.b = p.write(1000, pb);
  return s;
}

// proves: E-41
TEST_F(RxDetour, KeptBytesThatAreNotFpdusDowngradeAndStayInTheBuffer) {
  ASSERT_TRUE(p.up());
  const Straddling s = straddling(p);
  const Bytes both = joined({s.a, s.b});
  ASSERT_TRUE(std::equal(s.false_one.begin(), s.false_one.end(),
                         both.begin() + static_cast<std::ptrdiff_t>(s.false_at)));
  p.send(s.false_at, s.false_one);
  ASSERT_EQ(p.stats().iwarp.bytes_detour, s.false_one.size()) << "it looks like one";
  EXPECT_TRUE(p.untouched());
  p.send(0, s.a);
  EXPECT_EQ(p.at(0, 100), Bytes(100, 0xaa));
  EXPECT_FALSE(p.fast()) << "RCV.NXT is inside an FPDU";
  EXPECT_EQ(p.stats().iwarp.downgrades, 1u);
  const std::uint64_t got = s.false_at + s.false_one.size();
  EXPECT_EQ(p.rcv_nxt(), got);
  p.send(got, Bytes(both.begin() + static_cast<std::ptrdiff_t>(got), both.end()));
  EXPECT_EQ(p.rcv_nxt(), both.size());
  EXPECT_EQ(p.at(1000, 20), Bytes(20, 0xbb));
  EXPECT_EQ(p.at(9000, 20), Bytes(20, 0)) << "the false one was never placed";
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
  EXPECT_EQ(kept(), 0u);
}

// ---- the end of the stream ---------------------------------------------------------------------

// proves: E-41
TEST_F(RxDetour, AFinAfterAGapComesAfterTheKeptData) {
  up();
  p.burst({{kSize, fpdus[1], false, tcp::kAck | tcp::kFin}});
  EXPECT_NE(p.connection()->peer_fin, iwarp::PeerFin::Reached);
  EXPECT_FALSE(placed(1));
  send(0);
  EXPECT_TRUE(placed(0) && placed(1));
  ASSERT_NE(p.connection(), nullptr);
  EXPECT_EQ(p.connection()->peer_fin, iwarp::PeerFin::Reached);
  EXPECT_TRUE(p.connection()->failure.empty()) << p.connection()->failure;
  EXPECT_EQ(kept(), 0u);
}

// proves: E-41
TEST_F(RxDetour, ATerminateAfterAGapEndsTheStreamInOrder) {
  up();
  std::uint8_t t[ddp::kMaxTerminate];
  const std::uint32_t n = ddp::build_terminate(ddp::Violation::TaggedBounds, {}, t);
  const Bytes terminate = make_fpdu({t, n});
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
TEST_F(RxDetour, AConnectionThatEndsInADetourFreesItsMemory) {
  up();
  send(2);
  ASSERT_NE(kept(), 0u);
  p.burst({{0, {}, false, tcp::kRst}});
  EXPECT_EQ(kept(), 0u);
}

}  // namespace
}  // namespace urnic::test
