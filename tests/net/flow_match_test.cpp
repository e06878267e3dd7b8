#include "net/flow_match.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/inet_checksum.h"
#include "base/rng.h"
#include "golden_frames.h"
#include "net/header_template.h"
#include "support/golden.h"

namespace urnic::net {
namespace {

using test::Bytes;
using test::from_hex;

struct Head {
  std::uint8_t bytes[96];
  std::size_t in_head;
  explicit Head(const Bytes& frame) : in_head(std::min(frame.size(), sizeof bytes)) {
    // Bytes after the frame must not matter.
    std::memset(bytes, 0xa5, sizeof bytes);
    std::memcpy(bytes, frame.data(), in_head);
  }
};

bool matches(const FlowMatch& flow, const Bytes& frame, FlowMatch::Match* m) {
  const Head head(frame);
  return flow.match(head.bytes, head.in_head, static_cast<std::uint32_t>(frame.size()), m);
}

FlowMatch learned(const Bytes& frame) {
  FlowMatch flow;
  const Head head(frame);
  EXPECT_TRUE(flow.learn(head.bytes, classify(frame, static_cast<std::uint32_t>(frame.size()))));
  return flow;
}

struct Flow {
  HeaderTemplateConfig config;
  std::uint16_t src_port = 1000, dst_port = 2000;

  // A frame with `payload` bytes of TCP payload, and `padding` after the datagram.
  Bytes frame(std::uint32_t payload, std::uint16_t id, std::uint8_t ecn,
              std::size_t padding) const {
    const HeaderTemplate header(config);
    Bytes f(header.size() + 20 + payload + padding);
    header.emit(f.data(), 20 + payload, id, ecn);
    store_be16(&f[header.size()], src_port);
    store_be16(&f[header.size() + 2], dst_port);
    f[header.size() + 12] = 0x50;
    return f;
  }
};

Flow flow_of(bool v6, std::uint16_t vlan) {
  Flow f;
  f.config.src_mac = *MacAddress::parse("02:00:0a:00:00:01");
  f.config.dst_mac = *MacAddress::parse("02:00:0a:00:00:02");
  f.config.vlan = vlan;
  f.config.src = *IpAddress::parse(v6 ? "fd00::1" : "10.0.0.1");
  f.config.dst = *IpAddress::parse(v6 ? "fd00::2" : "10.0.0.2");
  return f;
}

void expect_agreement(const Bytes& frame, const FlowMatch::Match& m) {
  const Classified c = classify(frame, static_cast<std::uint32_t>(frame.size()));
  ASSERT_EQ(c.kind, FrameKind::Tcp);
  EXPECT_EQ(m.l4_offset, c.l4_offset);
  EXPECT_EQ(m.l4_len, c.l4_len);
  EXPECT_EQ(m.ecn, c.ecn);
  EXPECT_EQ(inet_fold(m.pseudo_sum), inet_fold(c.pseudo_sum));
}

TEST(FlowMatch, MatchesEveryFrameOfItsFlowWithTheResultOfClassify) {
  for (const bool v6 : {false, true}) {
    for (const std::uint16_t vlan : {std::uint16_t{0}, std::uint16_t{42}}) {
      const Flow flow = flow_of(v6, vlan);
      const FlowMatch match = learned(flow.frame(100, 7, 0, 0));
      for (const std::uint32_t payload : {0u, 1u, 25u, 1400u, 8000u}) {
        for (std::uint8_t ecn = 0; ecn < 4; ++ecn) {
          for (const std::size_t padding : {0u, 6u}) {
            const Bytes f =
                flow.frame(payload, static_cast<std::uint16_t>(payload * 31), ecn, padding);
            FlowMatch::Match m;
            ASSERT_TRUE(matches(match, f, &m)) << v6 << vlan << payload;
            expect_agreement(f, m);
          }
        }
      }
    }
  }
}

TEST(FlowMatch, RefusesOtherFlowsAndOtherTags) {
  const Flow flow = flow_of(false, 42);
  const FlowMatch match = learned(flow.frame(100, 7, 0, 0));
  FlowMatch::Match m;
  const auto refuses = [&](auto&& change) {
    Flow other = flow;
    change(other);
    return !matches(match, other.frame(100, 7, 0, 0), &m);
  };
  EXPECT_TRUE(refuses([](Flow& f) { f.src_port = 1001; }));
  EXPECT_TRUE(refuses([](Flow& f) { f.dst_port = 2001; }));
  EXPECT_TRUE(refuses([](Flow& f) { f.config.src = *IpAddress::parse("10.0.0.3"); }));
  EXPECT_TRUE(refuses([](Flow& f) { f.config.dst = *IpAddress::parse("10.0.0.3"); }));
  EXPECT_TRUE(refuses([](Flow& f) { f.config.vlan = 43; }));
  EXPECT_TRUE(refuses([](Flow& f) { f.config.vlan = 0; }));
  EXPECT_TRUE(refuses([](Flow& f) { f.config.src_mac.bytes[5] = 9; }));
  EXPECT_TRUE(refuses([](Flow& f) { f.config.dst_mac.bytes[5] = 9; }));
  // The priority of a tag is not part of the flow.
  Bytes prioritised = flow.frame(100, 7, 0, 0);
  prioritised[14] |= 0xe0;
  EXPECT_TRUE(matches(match, prioritised, &m));
}

TEST(FlowMatch, RefusesOptionsFragmentsAndBadHeaderChecksums) {
  const Flow flow = flow_of(false, 0);
  const Bytes good = flow.frame(100, 7, 0, 0);
  const FlowMatch match = learned(good);
  const auto fix = [](Bytes& f) {
    store_be16(&f[24], 0);
    store_be16(&f[24], inet_checksum(ipv4_header_sum(&f[14], 20)));
  };
  FlowMatch::Match m;
  Bytes f = good;
  f[24] ^= 1;
  EXPECT_FALSE(matches(match, f, &m)) << "checksum";
  f = good;
  f[20] = 0x20;  // more fragments
  fix(f);
  EXPECT_FALSE(matches(match, f, &m)) << "fragment";
  f = good;
  f[21] = 1;  // offset
  fix(f);
  EXPECT_FALSE(matches(match, f, &m)) << "offset";
  f = good;
  f[20] = 0;  // without DF it is still the same flow
  fix(f);
  EXPECT_TRUE(matches(match, f, &m));
  f = good;
  f[14] = 0x46;
  fix(f);
  EXPECT_FALSE(matches(match, f, &m)) << "options";
  f = good;
  store_be16(&f[16], static_cast<std::uint16_t>(f.size() - 14 + 1));
  fix(f);
  EXPECT_FALSE(matches(match, f, &m)) << "longer than the frame";
  f = good;
  store_be16(&f[16], 39);
  fix(f);
  EXPECT_FALSE(matches(match, f, &m)) << "no room for TCP";
}

TEST(FlowMatch, MatchesNothingBeforeLearning) {
  FlowMatch match;
  FlowMatch::Match m;
  const Bytes zeros(100);
  EXPECT_FALSE(matches(match, zeros, &m));
  const Bytes f = flow_of(false, 0).frame(100, 7, 0, 0);
  match = learned(f);
  match.forget();
  EXPECT_FALSE(matches(match, f, &m));
  EXPECT_FALSE(match.known());
}

// For any mutated frame: if it matches, classify() reports a TCP frame with the same fields.
TEST(FlowMatch, AgreesWithClassifyOnMutatedFrames) {
  const std::uint64_t seed = 20;
  Rng rng(seed);
  int taken = 0;
  for (const bool v6 : {false, true}) {
    for (const std::uint16_t vlan : {std::uint16_t{0}, std::uint16_t{42}}) {
      const Flow flow = flow_of(v6, vlan);
      const FlowMatch match = learned(flow.frame(100, 7, 0, 0));
      for (int i = 0; i < 20000; ++i) {
        Bytes f = flow.frame(static_cast<std::uint32_t>(rng.below(80)), 5, 1, rng.below(4));
        for (std::uint64_t k = rng.below(3); k > 0; --k) {
          f[rng.below(f.size())] = static_cast<std::uint8_t>(rng.next());
        }
        f.resize(f.size() - rng.below(3) * rng.below(20));
        FlowMatch::Match m;
        if (!matches(match, f, &m)) continue;
        ++taken;
        expect_agreement(f, m);
        if (HasFailure()) FAIL() << "seed " << seed << " frame " << i;
      }
    }
  }
  EXPECT_GT(taken, 10000);
}

TEST(InetSumWords, IsTheSumOfTheHeader) {
  const std::uint64_t seed = 3;
  Rng rng(seed);
  for (int i = 0; i < 2000; ++i) {
    Bytes b(4 * (1 + rng.below(15)));
    // Also all ones and all zeros: these exercise the carries and both zeros of the sum.
    const std::uint64_t kind = rng.below(4);
    for (auto& o : b) o = kind == 0 ? 0xff : kind == 1 ? 0 : static_cast<std::uint8_t>(rng.next());
    ASSERT_EQ(inet_sum_words(b.data(), b.size()), inet_fold(inet_sum(b))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace urnic::net
