#include "fault/tcp_frame.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/random_bytes.h"
#include "tcp_frames.h"

namespace urnic::fault {
namespace {

using namespace urnic::test;

TEST(TcpFrame, FindsHeaderAndPayload) {
  for (const bool v6 : {false, true}) {
    const Frame f = as_frame({.seq = 99,
                              .payload = 100,
                              .flags = tcp::kAck | tcp::kPsh,
                              .v6 = v6,
                              .vlan = 5,
                              .tsval = 3,
                              .padding = 8});
    const auto v = parse_tcp_frame(f);
    ASSERT_TRUE(v);
    EXPECT_EQ(v->seq, 99u);
    EXPECT_EQ(v->header_len, 32u);
    EXPECT_EQ(v->payload_len, 100u);
    EXPECT_EQ(v->overhead(), 18u + (v6 ? 40 : 20) + 32);
    EXPECT_TRUE(v->has(tcp::kPsh));
    EXPECT_TRUE(tcp_checksum_ok(f, *v));
    EXPECT_EQ(v->src().port, 40000);
  }
}

TEST(TcpFrame, BadDataOffsetsAreRefused) {
  Bytes b = tcp_frame({.payload = 10});
  b[34 + 12] = 0x40;
  EXPECT_FALSE(parse_tcp_frame(frame_of(b)));
  b[34 + 12] = 0xf0;  // beyond the segment
  EXPECT_FALSE(parse_tcp_frame(frame_of(b)));
}

TEST(TcpFrame, PiecesHaveTheirSequenceFlagsAndChecksums) {
  for (const bool v6 : {false, true}) {
    const Frame f = as_frame({.seq = 0xfffffff0,
                              .payload = 1000,
                              .flags = tcp::kAck | tcp::kPsh | tcp::kFin | tcp::kCwr,
                              .v6 = v6,
                              .tsval = 12345,
                              .sack = true,
                              .padding = 3});
    const auto v = view(f);
    const auto pieces = split(f, v, 300);
    ASSERT_EQ(pieces.size(), 4u);
    std::uint32_t seq = 0xfffffff0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto pv = view(pieces[i]);
      expect_sound(pieces[i]);
      EXPECT_EQ(pv.seq, seq);
      EXPECT_EQ(pv.payload_len, i == 3 ? 100u : 300u);
      EXPECT_EQ(pv.ack, 777u);
      EXPECT_EQ(pv.has(tcp::kFin), i == 3);
      EXPECT_EQ(pv.has(tcp::kPsh), i == 3);
      EXPECT_EQ(pv.has(tcp::kCwr), i == 0);
      // Options are copied unchanged.
      EXPECT_EQ(
          Bytes(pieces[i].bytes.begin() + pv.net.l4_offset + 20,
                pieces[i].bytes.begin() + pv.payload_offset()),
          Bytes(f.bytes.begin() + v.net.l4_offset + 20, f.bytes.begin() + v.payload_offset()));
      seq += pv.payload_len;
    }
  }
}

TEST(TcpFrame, JoinTakesTheNewerHeaderAndBothFlags) {
  const Frame a = as_frame({.seq = 1000,
                            .payload = 400,
                            .flags = tcp::kAck | tcp::kCwr,
                            .ack = 5,
                            .tsval = 10,
                            .ecn = 3});
  const Frame b = as_frame({.seq = 1400,
                            .payload = 101,
                            .flags = tcp::kAck | tcp::kFin,
                            .ack = 6,
                            .tsval = 11,
                            .ecn = 2});
  ASSERT_TRUE(can_join(view(a), view(b)));
  const Frame j = join(a, view(a), b, view(b));
  expect_sound(j);
  const auto v = view(j);
  EXPECT_EQ(v.seq, 1000u);
  EXPECT_EQ(v.payload_len, 501u);
  EXPECT_EQ(v.ack, 6u);
  EXPECT_TRUE(v.has(tcp::kFin));
  EXPECT_TRUE(v.has(tcp::kCwr));
  EXPECT_EQ(v.net.ecn, 3);  // the mark survives
  EXPECT_EQ(load_be32(&j.bytes[v.net.l4_offset + 24u]), 11u);
}

TEST(TcpFrame, ForbiddenJoinsAreRefused) {
  const auto joinable = [](const SegmentSpec& a, const SegmentSpec& b) {
    const Frame fa = as_frame(a), fb = as_frame(b);
    return can_join(view(fa), view(fb));
  };
  const SegmentSpec a{.seq = 1, .payload = 10}, b{.seq = 11, .payload = 10};
  EXPECT_TRUE(joinable(a, b));
  const auto changed = [](SegmentSpec s, auto&& f) {
    f(s);
    return s;
  };
  EXPECT_FALSE(joinable(a, changed(b, [](auto& s) { s.seq = 12; })));
  EXPECT_FALSE(joinable(a, changed(b, [](auto& s) { s.seq = 10; })));
  EXPECT_FALSE(joinable(a, changed(b, [](auto& s) { s.payload = 0; })));
  EXPECT_FALSE(joinable(a, changed(b, [](auto& s) { s.src_port = 1; })));
  EXPECT_FALSE(joinable(a, changed(b, [](auto& s) { s.v6 = true; })));
  EXPECT_FALSE(joinable(a, changed(b, [](auto& s) { s.vlan = 9; })));
  EXPECT_FALSE(joinable(a, changed(b, [](auto& s) { s.flags = tcp::kRst; })));
  EXPECT_FALSE(joinable(a, changed(b, [](auto& s) { s.flags = tcp::kAck | tcp::kUrg; })));
  EXPECT_FALSE(joinable(changed(a, [](auto& s) { s.flags = tcp::kAck | tcp::kFin; }), b));
  EXPECT_FALSE(joinable(changed(a, [](auto& s) { s.flags = tcp::kSyn; }), b));
  EXPECT_FALSE(joinable({.seq = 1, .payload = 40000}, {.seq = 40001, .payload = 30000}));
}

TEST(TcpFrame, PatchedChecksumsStayRightAndWrongOnesWrong_RFC1624) {
  constexpr std::uint64_t kSeed = 8;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  for (int i = 0; i < 20000; ++i) {
    Frame f = as_frame({.payload = rng.between(1, 60), .v6 = rng.chance(0.5)});
    const auto v = view(f);
    const bool broken = rng.chance(0.3);
    if (broken) f.bytes[v.net.l4_offset + 16u] ^= 0x10;
    const std::uint64_t n = rng.between(1, v.payload_len);
    const auto at =
        static_cast<std::uint32_t>(v.payload_offset() + rng.below(v.payload_len - n + 1));
    const Bytes was(f.bytes.begin() + at, f.bytes.begin() + at + static_cast<std::ptrdiff_t>(n));
    for (std::uint64_t k = 0; k < n; ++k) f.bytes[at + k] = static_cast<std::uint8_t>(rng.next());
    patch_tcp_checksum(f, v, at, was);
    ASSERT_EQ(tcp_checksum_ok(f, v), !broken) << i;
  }
}

TEST(TcpFrame, HostileFramesAreHandled) {
  constexpr std::uint64_t kSeed = 12;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  const Bytes seeds[] = {tcp_frame({.payload = 40, .tsval = 3}),
                         tcp_frame({.payload = 40, .v6 = true, .vlan = 3, .padding = 9})};
  int parsed = 0;
  for (int i = 0; i < 100000; ++i) {
    Bytes b = mutate(rng, seeds[rng.below(2)]);
    if (b.size() > 34 && b[12] == 8 && b[14] == 0x45) {
      store_be16(&b[24], 0);
      store_be16(&b[24], inet_checksum(net::ipv4_header_sum(&b[14], 20)));
    }
    b.shrink_to_fit();
    Frame f = frame_of(b);
    const auto v = parse_tcp_frame(f);
    if (!v) continue;
    ++parsed;
    ASSERT_LE(v->overhead() + v->payload_len, f.bytes.size());
    tcp_checksum_ok(f, *v);
    if (v->payload_len == 0) continue;
    std::size_t total = 0;
    for (const Frame& p : split(f, *v, static_cast<std::uint32_t>(rng.between(1, 50)))) {
      total += view(p).payload_len;
    }
    ASSERT_EQ(total, v->payload_len);
  }
  EXPECT_GT(parsed, 10000);
}

}  // namespace
}  // namespace urnic::fault
