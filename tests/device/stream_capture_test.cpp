// The made-up segments of a capture over the kernel's TCP.
#include "device/stream_capture.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "fault/tcp_frame.h"
#include "tests/fault/captured.h"

namespace urnic::device {
namespace {

using fault::captured::TempDir;
using kernel_tcp::Tap;
using kernel_tcp::Tapped;
using Bytes = std::vector<std::uint8_t>;

struct Shown {
  SocketAddress from;
  std::uint32_t seq = 0, ack = 0;
  std::uint8_t flags = 0;
  Bytes payload;
  bool inbound = false;
};

struct StreamCaptureTest : testing::Test {
  // All segments so far. Each must be well-formed, with right checksums.
  std::vector<Shown> shown() {
    capture.idle();
    const Bytes all = fault::captured::read_all(path);
    std::vector<Shown> out;
    for (std::size_t at = 0; at < all.size(); at += load_le32(&all[at + 4])) {
      if (load_le32(&all[at]) != 6) continue;  // an enhanced packet
      const std::uint32_t length = load_le32(&all[at + 20]);
      fault::Frame f;
      f.bytes.assign(all.begin() + static_cast<std::ptrdiff_t>(at + 28),
                     all.begin() + static_cast<std::ptrdiff_t>(at + 28 + length));
      const auto v = fault::parse_tcp_frame(f);
      EXPECT_TRUE(v && fault::tcp_checksum_ok(f, *v)) << "segment " << out.size();
      if (!v) break;
      const auto begin = f.bytes.begin() + v->payload_offset();
      const std::size_t options = at + 28 + (length + 3) / 4 * 4;
      out.push_back({v->src(), v->seq, v->ack, v->flags, Bytes(begin, begin + v->payload_len),
                     load_le32(&all[options + 4]) == 1});
    }
    return out;
  }
  static Bytes counting(std::size_t n, std::uint8_t from) {
    Bytes b(n);
    std::iota(b.begin(), b.end(), from);
    return b;
  }
  static iovec piece(Bytes& b) { return {b.data(), b.size()}; }

  const TempDir dir;
  const std::string path = dir / "a.pcapng";
  StreamCapture capture{*fault::CaptureFile::create(path, {.comment = "made up"}),
                        fault::captured::kClock};
  const SocketAddress own{*IpAddress::parse("192.0.2.1"), 1000},
      peer{*IpAddress::parse("192.0.2.2"), 2000};
  Tapped c{own, peer};
};

TEST_F(StreamCaptureTest, ARecordIsASegmentAfterTheHandshake) {
  Bytes head = counting(6, 0), body = counting(10, 6), tail = counting(4, 16);
  const iovec pieces[] = {piece(head), piece(body), piece(tail)};
  const std::uint32_t records[] = {8, 12};
  capture.sent(c, pieces, records, 20);
  const auto all = shown();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].flags, tcp::kSyn);
  EXPECT_EQ(all[0].from, own);
  EXPECT_EQ(all[1].flags, tcp::kSyn | tcp::kAck);
  EXPECT_EQ(all[1].from, peer);
  EXPECT_TRUE(all[1].inbound);
  EXPECT_EQ(all[2].flags, tcp::kAck);
  EXPECT_EQ(all[3].payload, counting(8, 0));
  EXPECT_EQ(all[3].seq, 1u);
  EXPECT_EQ(all[3].ack, 1u);
  EXPECT_FALSE(all[3].inbound);
  EXPECT_EQ(all[4].payload, counting(12, 8));
  EXPECT_EQ(all[4].seq, 9u);
}

TEST_F(StreamCaptureTest, OnlyWhatTheKernelTookIsShown) {
  Bytes bytes = counting(20, 0);
  const iovec pieces[] = {piece(bytes)};
  const std::uint32_t records[] = {8, 8, 4};
  c.sent = 100;
  c.received = 50;
  capture.sent(c, pieces, records, 11);
  const auto all = shown();
  ASSERT_EQ(all.size(), 2u) << "no handshake later on";
  EXPECT_EQ(all[1].payload, counting(3, 8));
  EXPECT_EQ(all[1].seq, 109u);
  EXPECT_EQ(all[1].ack, 51u);
}

TEST_F(StreamCaptureTest, ThePeerConnectsIfItSendsFirst) {
  capture.received(c, counting(5, 0));
  const auto all = shown();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].flags, tcp::kSyn);
  EXPECT_EQ(all[0].from, peer);
  EXPECT_EQ(all[3].payload, counting(5, 0));
  EXPECT_TRUE(all[3].inbound);
}

TEST_F(StreamCaptureTest, ALongReadIsSeveralSegments) {
  c = {{*IpAddress::parse("2001:db8::1"), 1000}, {*IpAddress::parse("2001:db8::2"), 2000}, 1, 1};
  const Bytes bytes = counting(100'001, 7);
  capture.received(c, bytes);
  Bytes together;
  std::uint32_t next = 2;
  for (const Shown& s : shown()) {
    EXPECT_EQ(s.seq, next);
    EXPECT_EQ((s.flags & tcp::kPsh) != 0, together.size() + s.payload.size() == bytes.size());
    next += static_cast<std::uint32_t>(s.payload.size());
    together.insert(together.end(), s.payload.begin(), s.payload.end());
  }
  EXPECT_EQ(together, bytes);
}

TEST_F(StreamCaptureTest, EitherEndEndsIt) {
  c.sent = 10;
  c.received = 20;
  capture.ended(c, Tap::End::Fin, true);
  capture.ended(c, Tap::End::Reset, false);
  const auto all = shown();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].flags, tcp::kFin | tcp::kAck);
  EXPECT_EQ(all[0].from, peer);
  EXPECT_EQ(all[0].seq, 21u);
  EXPECT_EQ(all[1].flags, tcp::kRst | tcp::kAck);
  EXPECT_EQ(all[1].seq, 11u);
}

TEST_F(StreamCaptureTest, TheFileSaysThatHeadersAreMadeUp) {
  const Bytes all = fault::captured::read_all(path);
  const std::string text(all.begin(), all.end());
  EXPECT_NE(text.find("made up"), std::string::npos);
}

}  // namespace
}  // namespace urnic::device
