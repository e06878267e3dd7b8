// Compares the short path of a connection initiated SLOW (Receiver::reassemble_plain) with the
// single steps: the same stream, cut into segments that take one or the other.
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

struct Taken {
  Bytes region;
  ConnectionStats stats;
  std::vector<std::uint64_t> acks;
  std::uint16_t window = 0;
};

// `pieces`: number of segments per FPDU.
void take(std::size_t pieces, Taken* out) {
  HandPeer p;
  ASSERT_TRUE(
      p.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Slow; }));
  Rng rng{23};
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < 60; ++i) {
    const Bytes fpdu =
        p.write((i * 977) % 60000, testing::random_bytes(rng, 1 + (i * 131) % 1400), i % 3 == 0);
    for (std::size_t k = 0; k < pieces; ++k) {
      const auto from = static_cast<std::ptrdiff_t>(fpdu.size() * k / pieces);
      const auto to = static_cast<std::ptrdiff_t>(fpdu.size() * (k + 1) / pieces);
      const auto a =
          p.send(at + static_cast<std::uint64_t>(from), {fpdu.begin() + from, fpdu.begin() + to});
      if (k + 1 != pieces) continue;
      ASSERT_EQ(a.size(), 1u);
      out->acks.push_back(a[0].ack);
      out->window = a[0].seg.window;
    }
    at += fpdu.size();
  }
  EXPECT_EQ(p.rcv_nxt(), at);
  EXPECT_TRUE(p.connection()->buffer.empty());
  out->region = p.region;
  out->stats = p.stats();
}

// proves
TEST(RxSlowPlain, TheShortPathGivesTheSameResultAsTheSteps) {
  Taken whole, halves;
  take(1, &whole);
  take(2, &halves);
  EXPECT_EQ(whole.region, halves.region);
  EXPECT_EQ(whole.acks, halves.acks);
  EXPECT_EQ(whole.window, halves.window);
  const auto &a = whole.stats.iwarp, &b = halves.stats.iwarp;
  EXPECT_EQ(a.bytes_slow, b.bytes_slow);
  EXPECT_EQ(a.bytes_fast, 0u);
  EXPECT_EQ(a.bytes_copied, b.bytes_copied);
  EXPECT_EQ(a.ddp.fpdus_received, b.ddp.fpdus_received);
  EXPECT_EQ(whole.stats.verbs.payload_placed, halves.stats.verbs.payload_placed);
  EXPECT_EQ(whole.stats.verbs.write_bytes_received, halves.stats.verbs.write_bytes_received);
  const auto slow = static_cast<std::size_t>(fastpath::Reason::Slow);
  EXPECT_EQ(a.reasons[slow] * 2, b.reasons[slow]);
}

// A Write that arrives while half an FPDU waits is placed after it.
TEST(RxSlowPlain, NothingOvertakesWaitingData) {
  HandPeer p;
  ASSERT_TRUE(
      p.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Slow; }));
  const Bytes first = p.write(0, Bytes(100, 1)), second = p.write(0, Bytes(100, 2)),
              third = p.write(0, Bytes(100, 3));
  p.send(0, first);
  const auto cut = second.begin() + 60;
  p.send(first.size(), Bytes(second.begin(), cut));
  // The rest of the second FPDU, and the whole third one in its own segment.
  p.burst({{first.size() + 60, Bytes(cut, second.end())}, {first.size() + second.size(), third}});
  EXPECT_EQ(p.at(0, 100), Bytes(100, 3));
  // Beyond a gap it waits, and the data that fills the gap is placed first.
  const std::uint64_t end = first.size() + second.size() + third.size();
  p.send(end + first.size(), second);
  EXPECT_EQ(p.at(0, 100), Bytes(100, 3));
  p.send(end, first);
  EXPECT_EQ(p.at(0, 100), Bytes(100, 2));
}

}  // namespace
}  // namespace urnic::test
