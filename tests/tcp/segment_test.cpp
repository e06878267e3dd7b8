#include "tcp/segment.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace urnic::tcp {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes emit(const Segment& s) {
  Bytes b(kHeaderMax, 0xee);
  b.resize(emit_header(s, b.data()));
  return b;
}

Segment parse(const Bytes& b) {
  std::size_t n = 0;
  auto r = parse_segment(b, &n);
  EXPECT_TRUE(r.ok());
  EXPECT_EQ(n, b.size());
  return r.ok() ? *r : Segment{};
}

Bytes with_options(const Bytes& options) {
  Bytes b(20, 0);
  for (const std::uint8_t o : options) b.push_back(o);
  while (b.size() % 4 != 0) b.push_back(0);
  b[12] = static_cast<std::uint8_t>(b.size() / 4 << 4);
  return b;
}

TEST(Segment, HeaderWithoutOptionsByteForByte) {
  Segment s;
  s.src_port = 0x1234;
  s.dst_port = 0x5678;
  s.seq = Seq(0x01020304);
  s.ack = Seq(0xa0b0c0d0);
  s.flags = kAck | kPsh;
  s.window = 0xfedc;
  s.urgent = 7;
  const Bytes want = {0x12, 0x34, 0x56, 0x78, 0x01, 0x02, 0x03, 0x04, 0xa0, 0xb0,
                      0xc0, 0xd0, 0x50, 0x18, 0xfe, 0xdc, 0,    0,    0,    7};
  EXPECT_EQ(emit(s), want);
  const Segment back = parse(want);
  EXPECT_EQ(back.src_port, s.src_port);
  EXPECT_EQ(back.dst_port, s.dst_port);
  EXPECT_EQ(back.seq, s.seq);
  EXPECT_EQ(back.ack, s.ack);
  EXPECT_EQ(back.flags, s.flags);
  EXPECT_EQ(back.window, s.window);
  EXPECT_EQ(back.urgent, s.urgent);
}

TEST(Segment, SynOptionsInTheOrderMssSackTsNopWscale) {
  Segment s;
  s.flags = kSyn;
  s.opts.has_mss = s.opts.sack_permitted = s.opts.has_ts = s.opts.has_wscale = true;
  s.opts.mss = 1460;
  s.opts.tsval = 0x11223344;
  s.opts.wscale = 7;
  const Bytes b = emit(s);
  const Bytes want = {2,    4,    0x05, 0xb4, 4, 2, 8, 10, 0x11, 0x22,
                      0x33, 0x44, 0,    0,    0, 0, 1, 3,  3,    7};
  EXPECT_EQ(Bytes(b.begin() + 20, b.end()), want);
  const Segment back = parse(b);
  EXPECT_TRUE(back.opts.has_mss && back.opts.sack_permitted && back.opts.has_ts &&
              back.opts.has_wscale);
  EXPECT_EQ(back.opts.mss, 1460);
  EXPECT_EQ(back.opts.wscale, 7);
  EXPECT_EQ(back.opts.tsval, 0x11223344u);
}

TEST(Segment, SynOptionsStayAlignedWhicheverAreAbsent) {
  for (unsigned mask = 0; mask < 16; ++mask) {
    Segment s;
    s.flags = kSyn;
    s.opts.has_mss = mask & 1;
    s.opts.sack_permitted = mask & 2;
    s.opts.has_ts = mask & 4;
    s.opts.has_wscale = mask & 8;
    s.opts.mss = 536;
    s.opts.wscale = 3;
    const Bytes b = emit(s);
    EXPECT_EQ(b.size() % 4, 0u);
    const Segment back = parse(b);
    EXPECT_EQ(back.opts.has_mss, s.opts.has_mss) << mask;
    EXPECT_EQ(back.opts.sack_permitted, s.opts.sack_permitted) << mask;
    EXPECT_EQ(back.opts.has_ts, s.opts.has_ts) << mask;
    EXPECT_EQ(back.opts.has_wscale, s.opts.has_wscale) << mask;
  }
}

TEST(Segment, SackBlocksFourAloneThreeBesideTimestamps_RFC2018) {
  Segment s;
  s.flags = kAck;
  s.opts.sack_count = 4;
  for (std::uint32_t i = 0; i < 4; ++i) s.opts.sack[i] = {Seq(100 * i), Seq(100 * i + 50)};
  EXPECT_EQ(emit(s).size(), 20u + 4 + 32);
  EXPECT_EQ(parse(emit(s)).opts.sack, s.opts.sack);
  s.opts.has_ts = true;
  const Bytes b = emit(s);
  EXPECT_EQ(b.size(), kHeaderMax);
  const Segment back = parse(b);
  EXPECT_EQ(back.opts.sack_count, 3);
  EXPECT_EQ(back.opts.sack[2], s.opts.sack[2]);
}

TEST(Segment, TimestampsBesideOtherOptionsAreFound) {
  const Segment s = parse(with_options({8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 99, 4, 1, 2}));
  EXPECT_TRUE(s.opts.has_ts);
  EXPECT_EQ(s.opts.tsval, 1u);
  EXPECT_EQ(s.opts.tsecr, 2u);
}

TEST(Segment, WindowShiftAbove14IsTakenAs14_RFC7323_2_3) {
  EXPECT_EQ(parse(with_options({3, 3, 200})).opts.wscale, 14);
}

TEST(Segment, MalformedOptionsEndParsingButKeepTheSegment_RFC9293_3_1) {
  const std::vector<Bytes> bad = {
      {2, 0, 5, 180},            // length below 2: the next option cannot be found
      {2, 1, 5, 180},            //
      {2, 40, 5, 180},           // beyond the header
      {8, 10, 0, 0},             // cut off
      {1, 1, 1, 2},              // kind without a length
      {3, 4, 7, 7, 2, 3, 5, 0},  // known kinds of the wrong length are skipped
      {5, 7, 0, 0, 0, 0, 0, 0},  // half a SACK block
      {5, 2, 4, 3, 0},
  };
  for (const Bytes& o : bad) {
    const Segment s = parse(with_options(o));
    EXPECT_FALSE(s.opts.has_mss || s.opts.has_wscale || s.opts.has_ts || s.opts.sack_permitted);
    EXPECT_EQ(s.opts.sack_count, 0);
  }
  EXPECT_TRUE(parse(with_options({2, 4, 1, 0, 3, 0})).opts.has_mss);
}

TEST(Segment, BadDataOffsetAndShortHeaderAreErrors) {
  std::size_t n = 0;
  Bytes b(20, 0);
  b[12] = 4 << 4;
  EXPECT_EQ(parse_segment(b, &n).error(), ParseError::BadDataOffset);
  b[12] = 6 << 4;
  EXPECT_EQ(parse_segment(b, &n).error(), ParseError::TooShort);
  b[12] = 5 << 4;
  EXPECT_TRUE(parse_segment(b, &n).ok());
  b.pop_back();
  EXPECT_EQ(parse_segment(b, &n).error(), ParseError::TooShort);
  EXPECT_EQ(parse_segment({}, &n).error(), ParseError::TooShort);
}

TEST(Segment, AnyBytesParseWithoutReadingBeyondThem) {
  Rng rng(7);
  for (int i = 0; i < 100000; ++i) {
    Bytes b(rng.below(70));
    for (auto& x : b) x = static_cast<std::uint8_t>(rng.next());
    if (b.size() > 40 && rng.chance(0.5)) b[20] = static_cast<std::uint8_t>(rng.below(9));
    std::size_t n = 0;
    const auto r = parse_segment(b, &n);
    if (r.ok()) {
      ASSERT_LE(n, b.size());
      ASSERT_LE(r.value().opts.sack_count, 4);
    }
  }
}

TEST(Segment, SequenceSpaceCountsSynAndFin) {
  Segment s;
  const std::uint8_t byte[3] = {};
  s.payload = byte;
  EXPECT_EQ(s.seq_len(), 3u);
  s.flags = kSyn | kFin;
  EXPECT_EQ(s.seq_len(), 5u);
}

TEST(Seq, OrderIsModular) {
  EXPECT_LT(Seq(0xfffffff0), Seq(0x10));
  EXPECT_GT(Seq(0x10), Seq(0xfffffff0));
  EXPECT_EQ(Seq(0x10) - Seq(0xfffffff0), 0x20);
  EXPECT_EQ(Seq(0xfffffff0) + 0x20, Seq(0x10));
  EXPECT_EQ(seq_max(Seq(0xffffffff), Seq(0)), Seq(0));
  EXPECT_LE(Seq(5), Seq(5));
}

}  // namespace
}  // namespace urnic::tcp
