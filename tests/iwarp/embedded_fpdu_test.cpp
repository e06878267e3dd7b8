// An FPDU inside the payload of another one, at the beginning of a segment (E-12).
#include "tests/iwarp/rx_detour.h"

namespace urnic::test {
namespace {

// A program's payload contains a whole FPDU with a correct CRC, and a device on the path cuts the
// stream there. How safe that is depends on the setting.
struct Embedded : RxDetour {
  Bytes inner, outer;
  std::uint64_t inner_at = 0;
  void make() {
    inner = p.write(5000, Bytes(60, 0xee));
    Bytes payload = testing::random_bytes(rng, 400);
    std::copy(inner.begin(), inner.end(), payload.begin() + 100);
    inner_at = kSize + 2 + 14 + 100;
    outer = p.write(1000, payload);
  }
};

// proves: E-12
TEST_F(Embedded, InPlaceModeAFalseFpduIsPlacedAndDetectedAtTheSeam) {
  p.options.out_of_order = engine::Options::OutOfOrder::Place;
  up();
  make();
  p.send(inner_at, inner);
  EXPECT_EQ(p.at(5000, 60), Bytes(60, 0xee)) << "believed: placed where the application said";
  send(0);
  EXPECT_TRUE(p.fast());
  p.send(kSize, outer);
  EXPECT_FALSE(p.fast()) << "the chain of FPDUs misses the block's edge";
  EXPECT_EQ(p.stats().iwarp.downgrades, 1u);
  EXPECT_EQ(p.stats().iwarp.reasons[static_cast<std::size_t>(fastpath::Reason::Seam)], 1u);
  EXPECT_EQ(p.rcv_nxt(), kSize + outer.size()) << "and the block is forgotten";
  EXPECT_EQ(p.at(1000, 400), Bytes(outer.begin() + 16, outer.begin() + 416));
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
}

// A Send that was never sent is not delivered either.
// proves: E-12
TEST_F(Embedded, AnEmbeddedSendIsUndoneByTheDowngrade) {
  p.options.out_of_order = engine::Options::OutOfOrder::Place;
  up();
  ASSERT_TRUE(p.post_receive(1, 20000, 900));
  make();
  inner = HandPeer::send_message(1, Bytes(60, 0xee));
  Bytes payload(400, 3);
  std::copy(inner.begin(), inner.end(), payload.begin() + 100);
  outer = p.write(1000, payload);
  p.send(inner_at, inner);
  send(0);
  p.send(kSize, outer);
  EXPECT_TRUE(p.receives().empty());
  p.send(kSize + outer.size(), HandPeer::send_message(1, Bytes(50, 1)));
  ASSERT_EQ(good_receives(p), 1u);
  EXPECT_EQ(p.receives()[0].completion.byte_len, 50u);
  EXPECT_EQ(p.at(20000, 50), Bytes(50, 1));
}

// proves: E-12, E-41
TEST_F(Embedded, InStoreModeAFalseFpduIsNotPlaced) {
  up();
  make();
  p.send(inner_at, inner);
  EXPECT_EQ(p.stats().iwarp.bytes_detour, inner.size()) << "bytes of the stream they are";
  send(0);
  p.send(kSize, outer);
  EXPECT_EQ(p.rcv_nxt(), kSize + outer.size());
  EXPECT_EQ(p.at(1000, 400), Bytes(outer.begin() + 16, outer.begin() + 416));
  EXPECT_EQ(p.at(5000, 60), Bytes(60, 0)) << "never placed";
  EXPECT_EQ(kept(), 0u);
  expect_nothing_happened();
}

// Out of order, one of two segments that overlap inside an FPDU must be false: it is dropped like
// any bad seam, and counted. A segment at RCV.NXT is always right.
// proves: E-12, E-41
TEST_F(Embedded, ABadSeamBeyondTheGapIsDroppedLikeAnyOther) {
  up();
  make();
  p.send(inner_at, inner);
  p.send(kSize, outer);
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 1u);
  EXPECT_EQ(p.stats().iwarp.bytes_detour, inner.size());
  send(0);
  p.send(kSize, outer);
  EXPECT_EQ(p.at(1000, 400), Bytes(outer.begin() + 16, outer.begin() + 416));
  EXPECT_EQ(p.at(5000, 60), Bytes(60, 0));
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(kept(), 0u);
}

}  // namespace
}  // namespace urnic::test
