#include "port/super_segment.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/inet_checksum.h"
#include "base/rng.h"
#include "port/port.h"
#include "port/port_check.h"

namespace urnic::port {
namespace {

using check::Bytes;

struct Make {
  bool ipv6 = false;
  std::uint32_t seq = 1000;
  std::uint8_t flags = tcp_flag::kAck;
  std::uint32_t payload = 1448;
  unsigned options = 12;
  unsigned ip_options = 0;
  bool vlan = false;
  std::uint16_t id = 7;
  bool dont_fragment = true;
  std::uint32_t ack = 55;
  std::uint16_t window = 512;
  std::uint8_t ttl = 64, tos = 0;
  std::uint16_t port = 4791;
  std::uint32_t fill = 3;  // seed of the payload; its byte i depends on seq + i
};

void fill_stream(std::uint8_t* p, std::size_t n, std::uint32_t from) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t x = (from + static_cast<std::uint32_t>(i)) * 2654435761u;
    p[i] = static_cast<std::uint8_t>(x >> 24);
  }
}

// A frame with correct checksums.
Bytes frame(const Make& m) {
  const std::size_t ip = m.vlan ? 18 : 14;
  const std::size_t tcp = ip + (m.ipv6 ? 40 : 20 + m.ip_options);
  const std::size_t data = tcp + 20 + m.options;
  Bytes b(data + m.payload);
  for (std::size_t i = 0; i < 12; ++i) b[i] = static_cast<std::uint8_t>(0x10 + i);
  if (m.vlan) {
    store_be16(&b[12], 0x8100);
    store_be16(&b[14], 5);
  }
  store_be16(&b[ip - 2], m.ipv6 ? 0x86dd : 0x0800);
  if (m.ipv6) {
    b[ip] = 0x60;
    b[ip + 1] = m.tos;
    store_be16(&b[ip + 4], static_cast<std::uint16_t>(b.size() - tcp));
    b[ip + 6] = 6;
    b[ip + 7] = m.ttl;
    for (std::size_t i = 8; i < 40; ++i) b[ip + i] = static_cast<std::uint8_t>(i);
  } else {
    b[ip] = static_cast<std::uint8_t>(0x45 + m.ip_options / 4);
    b[ip + 1] = m.tos;
    store_be16(&b[ip + 2], static_cast<std::uint16_t>(b.size() - ip));
    store_be16(&b[ip + 4], m.id);
    if (m.dont_fragment) b[ip + 6] = 0x40;
    b[ip + 8] = m.ttl;
    b[ip + 9] = 6;
    for (std::size_t i = 12; i < 20 + m.ip_options; ++i) b[ip + i] = static_cast<std::uint8_t>(i);
    store_be16(&b[ip + 10], inet_checksum(inet_sum({&b[ip], tcp - ip})));
  }
  store_be16(&b[tcp], m.port);
  store_be16(&b[tcp + 2], 9999);
  store_be32(&b[tcp + 4], m.seq);
  store_be32(&b[tcp + 8], m.ack);
  b[tcp + 12] = static_cast<std::uint8_t>((20 + m.options) / 4 << 4);
  b[tcp + 13] = m.flags;
  store_be16(&b[tcp + 14], m.window);
  for (std::size_t i = 0; i < m.options; ++i) b[tcp + 20 + i] = 1;
  fill_stream(&b[data], m.payload, m.seq);
  const auto shape = parse_tcp_frame(b, static_cast<std::uint32_t>(b.size()));
  const auto length = static_cast<std::uint32_t>(b.size() - tcp);
  if (shape) {
    const std::uint64_t sum = pseudo_sum(b, *shape, length) + inet_sum({&b[tcp], length});
    store_be16(&b[tcp + 16], inet_checksum(sum));
  }
  return b;
}

urnic_frame view(Bytes& b, std::uint32_t first_span = 0) {
  urnic_frame f{};
  f.data[0] = b.data();
  f.len[0] = static_cast<std::uint32_t>(b.size());
  if (first_span != 0) f.len[0] = std::min(f.len[0], first_span);
  f.data[1] = b.data() + f.len[0];
  f.len[1] = static_cast<std::uint32_t>(b.size()) - f.len[0];
  return f;
}

// Completes a checksum field that holds the pseudo-header sum.
void complete(Bytes& b) {
  const auto shape = parse_tcp_frame(b, static_cast<std::uint32_t>(b.size()));
  ASSERT_TRUE(shape);
  const ByteView tcp{b.data() + shape->tcp, b.size() - shape->tcp};
  store_be16(&b[shape->tcp + 16u], inet_checksum(inet_sum(tcp)));
}

// A super-segment as the kernel provides it: one large frame, checksum field = pseudo-header sum.
Bytes super(Make m, std::uint32_t payload) {
  m.payload = payload;
  Bytes b = frame(m);
  const auto shape = parse_tcp_frame(b, static_cast<std::uint32_t>(b.size()), false);
  const auto length = static_cast<std::uint32_t>(b.size()) - shape->tcp;
  store_be16(&b[shape->tcp + 16u], inet_fold(pseudo_sum(b, *shape, length)));
  return b;
}

// Splitting gives exactly the frames that a sender without offload would have sent.
// proves: E-33
TEST(SuperSegment, IsSplitIntoTheFramesTheSenderWouldHaveSent) {
  for (const bool ipv6 : {false, true}) {
    for (const bool vlan : {false, true}) {
      for (const unsigned ip_options : {0u, 8u}) {
        for (const std::uint32_t payload : {1u, 1447u, 1448u, 1449u, 14480u, 14481u, 63000u}) {
          Make m{.ipv6 = ipv6, .ip_options = ipv6 ? 0 : ip_options, .vlan = vlan};
          m.seq = 0xfffff000;  // wraps around on the way
          m.flags = tcp_flag::kAck | tcp_flag::kPsh | tcp_flag::kFin | tcp_flag::kCwr;
          Bytes big = super(m, payload);
          Splitter s;
          ASSERT_TRUE(s.start(big, 1448));
          std::uint32_t at = 0;
          for (unsigned i = 0; !s.done(); ++i) {
            std::uint8_t headers[kMaxHeaders];
            urnic_frame f;
            s.next(headers, &f);
            EXPECT_EQ(f.csum, URNIC_CSUM_PARTIAL);
            EXPECT_EQ(f.data[0], headers);
            Bytes got = check::joined(f);
            complete(got);
            Make want = m;
            want.payload = std::min(1448u, payload - at);
            want.seq = m.seq + at;
            want.id = static_cast<std::uint16_t>(m.id + i);
            want.flags = tcp_flag::kAck;
            if (i == 0) want.flags |= tcp_flag::kCwr;
            if (at + want.payload == payload) want.flags |= tcp_flag::kPsh | tcp_flag::kFin;
            EXPECT_EQ(got, frame(want)) << payload << " frame " << i;
            at += want.payload;
          }
          EXPECT_EQ(at, payload);
        }
      }
    }
  }
}

TEST(SuperSegment, OnlyTcpSegmentsAreSplit) {
  Bytes b = super({}, 5000);
  Splitter s;
  EXPECT_FALSE(s.start(b, 0));
  Bytes udp = b;
  udp[14 + 9] = 17;
  EXPECT_FALSE(s.start(udp, 1448));
  for (std::size_t cut = 0; cut < 14 + 20 + 32; ++cut) {
    Bytes small(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(cut));
    EXPECT_FALSE(s.start(small, 1448)) << cut;
  }
}

TEST(SuperSegment, GarbageIsSurvived) {
  const std::uint64_t seed = 99;
  Rng rng(seed);
  SCOPED_TRACE("seed 99");
  for (int i = 0; i < 20000; ++i) {
    Bytes b = super({.ipv6 = rng.chance(0.5), .vlan = rng.chance(0.3)},
                    static_cast<std::uint32_t>(rng.below(4000)));
    for (int k = 0; k < 3; ++k)
      b[rng.below(std::min<std::size_t>(b.size(), 80))] ^= 1u << rng.below(8);
    b.resize(rng.below(b.size() + 1));
    Splitter s;
    std::uint32_t frames = 0;
    if (s.start(b, static_cast<std::uint16_t>(1 + rng.below(2000)))) {
      while (!s.done()) {
        std::uint8_t headers[kMaxHeaders];
        urnic_frame f;
        s.next(headers, &f);
        ASSERT_LE(f.data[1] + f.len[1], b.data() + b.size());
        ASSERT_LT(++frames, 70000u);
      }
    }
    if (b.empty()) continue;
    Joiner j;
    const urnic_frame f = view(b);
    j.add(f);
    j.add(f);
  }
}

// Adds a burst; returns the number of frames in each run.
std::vector<unsigned> runs(std::vector<Bytes>& frames, std::uint32_t first_span = 0) {
  std::vector<unsigned> out;
  Joiner j;
  for (Bytes& b : frames) {
    const urnic_frame f = view(b, first_span);
    if (out.empty() || !j.add(f)) {
      if (!out.empty()) out.back() = j.count();
      j.restart();
      EXPECT_TRUE(j.add(f));
      out.push_back(1);
    }
  }
  if (!out.empty()) out.back() = j.count();
  return out;
}

std::vector<Bytes> stream(Make m, unsigned count) {
  std::vector<Bytes> v;
  for (unsigned i = 0; i < count; ++i) {
    v.push_back(frame(m));
    m.seq += m.payload;
    ++m.id;
  }
  return v;
}

using V = std::vector<unsigned>;

// proves: E-33
TEST(Joiner, AStreamJoinedAndSplitAgainIsUnchanged) {
  for (const bool ipv6 : {false, true}) {
    for (const std::uint32_t span : {0u, 0u + 14 + 40 + 32, 600u}) {
      if (span != 0 && span < 600 && !ipv6) continue;
      Make m{.ipv6 = ipv6, .payload = 1333};
      auto frames = stream(m, 20);
      m.seq += 20 * 1333;
      m.id += 20;
      m.payload = 100;
      m.flags |= tcp_flag::kPsh;
      frames.push_back(frame(m));
      ASSERT_EQ(runs(frames, span), V{21});
      Joiner j;
      Bytes big;
      for (Bytes& b : frames) {
        ASSERT_TRUE(j.add(view(b, span)));
        big.insert(big.end(), b.begin() + j.header_length(), b.end());
      }
      std::uint8_t headers[kMaxHeaders];
      VnetHeader v;
      const std::size_t n = j.finish(headers, &v);
      big.insert(big.begin(), headers, headers + n);
      EXPECT_EQ(v.gso_size, 1333);
      EXPECT_EQ(v.gso_type, ipv6 ? VnetHeader::kGsoTcp6 : VnetHeader::kGsoTcp4);
      EXPECT_EQ(v.flags, VnetHeader::kNeedsChecksum);
      EXPECT_EQ(v.header_length, n);
      EXPECT_EQ(v.checksum_offset, 16);
      Splitter s;
      ASSERT_TRUE(s.start(big, v.gso_size));
      for (Bytes& want : frames) {
        ASSERT_FALSE(s.done());
        std::uint8_t h[kMaxHeaders];
        urnic_frame f;
        s.next(h, &f);
        Bytes got = check::joined(f);
        complete(got);
        EXPECT_EQ(got, want);
      }
      EXPECT_TRUE(s.done());
    }
  }
}

TEST(Joiner, StopsAt64KiB) {
  auto frames = stream({.payload = 1448}, 100);
  const auto r = runs(frames);
  ASSERT_EQ(r.size(), 3u);
  EXPECT_EQ(r[0], 45u);  // 45 * 1448 + 52 < 65536 < 46 * 1448
}

TEST(Joiner, AShortOrPushedSegmentEndsTheRun) {
  auto frames = stream({}, 3);
  Make m{.seq = 1000 + 3 * 1448, .payload = 10, .id = 10};
  frames.push_back(frame(m));
  m.seq += 10;
  m.id++;
  m.payload = 1448;
  frames.push_back(frame(m));
  EXPECT_EQ(runs(frames), (V{4, 1}));
  frames = stream({.flags = tcp_flag::kAck | tcp_flag::kPsh}, 3);
  EXPECT_EQ(runs(frames), (V{1, 1, 1}));
}

TEST(Joiner, DifferingSegmentsAreNotJoined) {
  const std::vector<std::function<void(Make&)>> changes = {
      [](Make& m) { m.ack++; },
      [](Make& m) { m.window++; },
      [](Make& m) { m.ttl++; },
      [](Make& m) { m.tos++; },
      [](Make& m) { m.port++; },
      [](Make& m) { m.seq++; },
      [](Make& m) { m.options = 0; },
      [](Make& m) { m.payload++; },
      [](Make& m) { m.vlan = true; },
      [](Make& m) { m.ipv6 = true; },
      [](Make& m) { m.ip_options = 4; },
      [](Make& m) { m.flags |= tcp_flag::kSyn; },
      [](Make& m) { m.flags |= tcp_flag::kRst; },
      [](Make& m) { m.flags |= tcp_flag::kUrg; },
      [](Make& m) { m.flags |= tcp_flag::kEce; },
      [](Make& m) { m.flags = tcp_flag::kPsh; },
      [](Make& m) { m.payload = 0; },
      [](Make& m) { m.dont_fragment = false; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    auto frames = stream({}, 2);
    Make next{.seq = 1000 + 2 * 1448, .id = 9};
    changes[i](next);
    frames.push_back(frame(next));
    EXPECT_EQ(runs(frames), (V{2, 1})) << "change " << i;
  }
}

TEST(Joiner, WithoutDontFragmentTheIdentificationMustBeConsecutive) {
  auto frames = stream({.dont_fragment = false}, 3);
  EXPECT_EQ(runs(frames), V{3});
  frames = stream({.dont_fragment = false}, 2);
  frames.push_back(frame({.seq = 1000 + 2 * 1448, .id = 7, .dont_fragment = false}));
  EXPECT_EQ(runs(frames), (V{2, 1}));
}

// An injected fault must reach the peer, and not be repaired by the kernel's checksum.
TEST(Joiner, AFrameWithAWrongChecksumIsNotJoined) {
  for (unsigned bad = 0; bad < 4; ++bad) {
    for (std::uint32_t span : {0u, 1001u}) {
      auto frames = stream({}, 4);
      frames[bad][700] ^= 4;
      const auto r = runs(frames, span);
      const V want[] = {{1, 3}, {1, 1, 2}, {2, 1, 1}, {3, 1}};
      EXPECT_EQ(r, want[bad]) << bad << " " << span;
    }
  }
}

TEST(Joiner, PaddedAndNonTcpFramesAreNotJoined) {
  std::vector<Bytes> frames;
  frames.push_back(Bytes(60, 0));
  frames.push_back(Bytes(60, 0));
  Bytes padded = frame({.payload = 1});
  padded.resize(padded.size() + 5);
  frames.push_back(padded);
  Bytes fragment = frame({});
  fragment[14 + 6] = 0x20;
  frames.push_back(fragment);
  EXPECT_EQ(runs(frames), (V{1, 1, 1, 1}));
}

}  // namespace
}  // namespace urnic::port
