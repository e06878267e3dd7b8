// Segments that reach beyond the advertised window (E-45): whole FPDUs inside it are accepted.
// Bytes outside it are neither placed nor stored, FAST or SLOW.
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

struct RxWindow : RxPath {
  static constexpr std::uint32_t kWindow = 2100;

  RxWindow() { p.options.tcp.receive_buffer = kWindow; }
  // Bytes the engine has promised to accept.
  std::uint64_t window() {
    const tcp::Tcb& t = p.connection()->tcb;
    return t.rcv.adv - t.rcv.holes.rcv_nxt();
  }
  // All the FPDUs from `first` on, in one segment.
  Bytes all(std::size_t first = 0) const {
    Bytes bytes;
    for (std::size_t i = first; i < fpdus.size(); ++i) testing::append(bytes, fpdus[i]);
    return bytes;
  }
  void prepare_more_than_the_window() {
    data.clear();
    fpdus.clear();
    prepare(kWindow / kSize + 3);
  }
};

// proves: E-45
TEST_F(RxWindow, FastAcceptsOnlyTheWholeFpdusInsideTheWindow) {
  up();
  prepare_more_than_the_window();
  const std::uint64_t inside = window() / kSize;
  ASSERT_GT(inside, 0u);
  ASSERT_LT(inside, fpdus.size());
  const auto a = p.send(0, all());
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.rcv_nxt(), inside * kSize);
  for (std::size_t i = 0; i < fpdus.size(); ++i) {
    EXPECT_EQ(placed(i), i < inside) << "Write " << i;
  }
  ASSERT_FALSE(a.empty());
  EXPECT_EQ(a.back().ack, inside * kSize);
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 0u) << "nothing was wrong with it";
  // The rest is accepted when there is room for it.
  p.send(inside * kSize, all(inside));
  for (std::size_t i = 0; i < fpdus.size(); ++i) EXPECT_TRUE(placed(i));
  EXPECT_TRUE(p.fast());
}

// proves: E-45
TEST_F(RxWindow, WithoutAWholeFpduInsideTheWindowTheSegmentIsRefused) {
  up();
  prepare_more_than_the_window();
  // One FPDU as long as the window, one byte beyond its edge.
  const std::uint64_t promised = window();
  const Bytes big = testing::random_bytes(rng, promised + 4 - 20);
  const Bytes fpdu = p.write(8192, big);
  ASSERT_GT(fpdu.size(), promised);
  const auto a = p.send(0, fpdu);
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.rcv_nxt(), 0u);
  EXPECT_TRUE(p.untouched());
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].pure_ack());
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 0u);
}

// proves: E-45
TEST_F(RxWindow, OutOfOrderToo) {
  up();
  prepare_more_than_the_window();
  const std::uint64_t inside = window() / kSize;
  p.send(kSize, all(1));
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.rcv_nxt(), 0u);
  for (std::size_t i = 1; i < fpdus.size(); ++i) {
    EXPECT_EQ(placed(i), i < inside) << "Write " << i;
  }
  const tcp::HoleList& holes = p.connection()->tcb.rcv.holes;
  ASSERT_EQ(holes.size(), 1u);
  EXPECT_LE(holes.highest(), p.connection()->tcb.rcv.adv);
}

// proves: E-45
TEST_F(RxWindow, SlowStoresToTheEdge) {
  up_slow();
  prepare_more_than_the_window();
  const std::uint64_t promised = window();
  p.send(0, all());
  EXPECT_EQ(p.rcv_nxt(), promised);
}

}  // namespace
}  // namespace urnic::test
