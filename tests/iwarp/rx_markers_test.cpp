// Fig 3 through the engine: streams with markers, by row and case. tests/fastpath/fig3_test.cpp
// tests the meaning of the bytes; here the engine supplies the known frame ends and the grid.
#include "base/crc32c.h"
#include "mpa/builder.h"
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

using fastpath::Reason;
using Block = std::pair<std::uint64_t, std::uint64_t>;

// A segment at `at` of the stream. The marker grid begins at 0 (StartNum).
struct Marked {
  std::uint64_t at = 0;
  Bytes bytes;
  std::vector<std::size_t> starts;

  Marked& flip(std::size_t i) {
    bytes[i] ^= 0x20;
    return *this;
  }
  // Sets the first marker to `distance`.
  Marked& marker(std::uint16_t distance) {
    const std::uint32_t i = mpa::to_marker(static_cast<std::uint32_t>(at));
    store_be16(bytes.data() + i + 2, distance);
    return *this;
  }
  Marked& right_crc() {
    store_le32(bytes.data() + bytes.size() - 4, crc32c(ByteView(bytes).first(bytes.size() - 4)));
    return *this;
  }
  Marked& drop_tail(std::size_t n) {
    bytes.resize(bytes.size() - n);
    return *this;
  }
  std::uint64_t end() const { return at + bytes.size(); }
};

struct RxMarkers : RxPath {
  RxMarkers() {
    p.options.mpa.policy = mpa::Policy::Markers;
    p.options.context.variant = fastpath::InLogicVariant::Fig3;
  }
  void up_marked(std::uint32_t max_attempts = 0, ConnectionType type = ConnectionType::Fast) {
    ASSERT_TRUE(p.up([&](engine::ConnectParams& c) {
      c.context.initiated_as = type;
      c.context.variant = fastpath::InLogicVariant::Fig3;
      c.context.max_recovery_attempts = max_attempts;
      c.context.max_same_segment = 0;
      c.context.upgrade_after = 1;
    }));
    ASSERT_EQ(p.connection()->framing.policy, mpa::Policy::Markers);
  }
  // One Write FPDU per size, one after the other, from `at` on; Write i goes to 1000 i of the
  // region.
  Marked writes(std::uint64_t at, std::initializer_list<std::size_t> sizes, std::size_t first = 0) {
    Marked m;
    m.at = at;
    for (const std::size_t n : sizes) {
      const auto pos = static_cast<std::uint32_t>(m.end());
      const Bytes u = ddp::test::write_segment(p.stag, p.to(first++ * 1000), Bytes(n, 0x5a));
      Bytes f(mpa::framed_size(mpa::Policy::Markers, pos, static_cast<std::uint32_t>(u.size())));
      EXPECT_EQ(mpa::build_framed(f.data(), mpa::Policy::Markers, pos, u, {}, true).len, f.size());
      m.starts.push_back(m.bytes.size());
      testing::append(m.bytes, f);
    }
    return m;
  }
  std::vector<Answer> send(const Marked& m) { return p.send(m.at, m.bytes); }
  bool wrote(std::size_t i, std::size_t n) { return p.at(i * 1000, n) == Bytes(n, 0x5a); }
  std::uint64_t met(Reason r) { return p.stats().iwarp.reasons[static_cast<std::size_t>(r)]; }

  void expect_dropped(const std::vector<Answer>& a, std::uint64_t rcv_nxt, Reason why) {
    for (const Answer& x : a) {
      EXPECT_EQ(x.ack, rcv_nxt);
      EXPECT_TRUE(x.sack.empty());
    }
    EXPECT_TRUE(p.fast());
    EXPECT_EQ(p.rcv_nxt(), rcv_nxt);
    EXPECT_EQ(met(why), 1u);
    EXPECT_EQ(p.stats().iwarp.downgrades, 0u);
  }
  // Stored and acknowledged, although the bytes of `m` are not in order yet.
  void expect_stored_slow(const std::vector<Answer>& a, const Marked& m) {
    EXPECT_FALSE(p.fast());
    EXPECT_EQ(p.stats().iwarp.downgrades, 1u);
    EXPECT_EQ(p.stats().iwarp.bytes_slow, m.bytes.size());
    ASSERT_FALSE(a.empty());
    if (m.at == 0) {
      EXPECT_EQ(a.back().ack, m.end());
    } else {
      ASSERT_EQ(a.back().sack.size(), 1u);
      EXPECT_EQ(a.back().sack[0], Block(m.at, m.end()));
    }
    EXPECT_EQ(p.stats().iwarp.bytes_fast, 0u);
    EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
  }
};

// proves, T-3, T-7
TEST_F(RxMarkers, ValidFramesAreCutThroughInAndOutOfOrder) {
  up_marked();
  const Marked a = writes(0, {600}), b = writes(a.end(), {100, 0, 399, 33}, 1);
  send(b);
  EXPECT_TRUE(wrote(1, 100) && wrote(3, 399) && wrote(4, 33));
  send(a);
  EXPECT_TRUE(wrote(0, 600));
  EXPECT_EQ(p.rcv_nxt(), b.end());
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.stats().iwarp.bytes_slow, 0u);
}

// proves: T-1, R-11, R-54
TEST_F(RxMarkers, AConnectionInitiatedSlowStoresItsData) {
  up_marked(3, ConnectionType::Slow);
  const Marked a = writes(0, {600}), b = writes(a.end(), {300}, 1);
  send(a);
  send(b);
  EXPECT_TRUE(wrote(0, 600) && wrote(1, 300));
  EXPECT_EQ(met(Reason::Slow), 2u);
  EXPECT_EQ(p.stats().iwarp.bytes_slow, b.end());
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().iwarp.upgrades, 0u);
}

// proves: R-12, T-2
TEST_F(RxMarkers, AFirstFrameLongerThanTheSegmentIsStoredAndSlow) {
  up_marked();
  const Marked m = writes(0, {900}).drop_tail(8);
  expect_stored_slow(send(m), m);
  const Marked whole = writes(0, {900});
  p.send(m.end(), Bytes(whole.bytes.end() - 8, whole.bytes.end()));
  EXPECT_TRUE(wrote(0, 900));
}

// proves: R-14, T-4
TEST_F(RxMarkers, AnInvalidFrameAtRcvNxtIsDropped) {
  up_marked();
  expect_dropped(send(writes(0, {300}).flip(100)), 0, Reason::CrcCaseA);
  EXPECT_TRUE(p.untouched());
  send(writes(0, {300}));
  EXPECT_TRUE(wrote(0, 300));
}

// The other known frame end: the right edge of a block placed out of order. The segment contains no
// marker, so anywhere else it would be Case E.
// proves: R-14, T-4
TEST_F(RxMarkers, AnInvalidFrameAtTheRightEdgeOfABlockIsDroppedToo) {
  up_marked();
  const Marked block = writes(516, {100});
  send(block);
  ASSERT_TRUE(wrote(0, 100));
  const Marked behind = writes(block.end(), {200}, 1);
  ASSERT_LT(behind.end(), 1024u);
  for (const Answer& x : send(Marked(behind).flip(60))) {
    ASSERT_EQ(x.sack.size(), 1u);
    EXPECT_EQ(x.sack[0], Block(block.at, block.end()));
  }
  EXPECT_TRUE(p.fast()) << "certain corruption: no downgrade, though no attempt is allowed";
  EXPECT_EQ(met(Reason::CrcCaseA), 1u);
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 0u);
  send(behind);
  EXPECT_TRUE(wrote(1, 200));
}

// proves: R-15, T-5
TEST_F(RxMarkers, AMarkerThatPointsAtItsStartMakesItCorruption) {
  up_marked();
  expect_dropped(send(writes(924, {900}).flip(600)), 0, Reason::CrcCaseB);
  EXPECT_TRUE(p.untouched());
}

// proves: R-16, T-6
TEST_F(RxMarkers, CaseCIsStoredAndSlow) {
  up_marked();
  const Marked m = writes(924, {900}).flip(600).marker(104);
  expect_stored_slow(send(m), m);
}

// proves: R-17, T-6
TEST_F(RxMarkers, CaseDIsStoredAndSlow) {
  up_marked();
  const Marked m = writes(924, {900}).flip(600).marker(96);
  expect_stored_slow(send(m), m);
}

// proves: R-18, T-6
TEST_F(RxMarkers, CaseEIsStoredAndSlow) {
  up_marked();
  const Marked m = writes(520, {300}).flip(100);
  expect_stored_slow(send(m), m);
}

// proves: R-20, T-8
TEST_F(RxMarkers, AnInvalidFirstFrameIsTreatedAsIfItWereAlone) {
  {
    SCOPED_TRACE("A");
    up_marked();
    expect_dropped(send(writes(0, {400, 500}).flip(200)), 0, Reason::CrcCaseA);
    SCOPED_TRACE("B");
    send(writes(924, {400, 500}).flip(200));
    EXPECT_TRUE(p.fast());
    EXPECT_EQ(met(Reason::CrcCaseB), 1u);
    EXPECT_TRUE(p.untouched());
  }
  const auto stored = [](std::uint64_t at, std::uint16_t distance) {
    struct Fresh : RxMarkers {
      void TestBody() override {}
    } fresh;
    fresh.up_marked();
    Marked m = fresh.writes(at, {400, 500}).flip(200);
    if (distance != 0) m.marker(distance);
    fresh.expect_stored_slow(fresh.send(m), m);
  };
  SCOPED_TRACE("C");
  stored(924, 104);
  SCOPED_TRACE("D");
  stored(924, 4);
  SCOPED_TRACE("E");
  stored(524, 0);
}

// proves, T-9
TEST_F(RxMarkers, AMiddleOrLastInvalidFrameDropsTheWholeSegment) {
  up_marked();
  for (const std::size_t bad : {1u, 2u}) {
    Marked m = writes(0, {100, 200, 300});
    m.flip(m.starts[bad] + 60);
    send(m);
    EXPECT_TRUE(p.fast());
    EXPECT_TRUE(p.untouched());
    EXPECT_EQ(p.rcv_nxt(), 0u);
  }
  EXPECT_EQ(met(Reason::CrcLater), 2u);
}

// proves: R-23, T-10
TEST_F(RxMarkers, ALastFrameTooLongIsStoredAndSlow) {
  up_marked();
  const Marked m = writes(0, {100, 200, 300}).drop_tail(4);
  expect_stored_slow(send(m), m);
  EXPECT_TRUE(wrote(0, 100) && wrote(1, 200));
  EXPECT_FALSE(wrote(2, 300));
}

// A correct CRC over bytes whose marker shows that no frame begins here.
// proves: R-16, T-6
TEST_F(RxMarkers, ACorrectCrcWithAWrongMarkerIsNotPlaced) {
  up_marked(3);
  const Marked first = writes(0, {390});
  send(first);
  ASSERT_TRUE(wrote(0, 390));
  ASSERT_EQ(first.end() % 4, 0u);
  const Marked bad = writes(first.end(), {400}, 1).marker(40).right_crc();
  expect_dropped(send(bad), first.end(), Reason::MarkerElsewhere);
  EXPECT_EQ(p.at(1000, 400), Bytes(400, 0));
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 1u);
  // The same out of order.
  send(writes(1536, {400}, 2).marker(40).right_crc());
  EXPECT_EQ(p.at(2000, 400), Bytes(400, 0));
  EXPECT_EQ(p.holes(), 0u);
  send(writes(first.end(), {400}, 1));
  EXPECT_TRUE(wrote(1, 400));
  EXPECT_TRUE(p.fast());
}

}  // namespace
}  // namespace urnic::test
