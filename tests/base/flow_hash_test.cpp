#include "base/flow_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/rng.h"

namespace urnic {
namespace {

IpAddress random_address(Rng& rng, bool v6) {
  if (!v6) return IpAddress::v4(static_cast<std::uint32_t>(rng.next()));
  std::array<std::uint8_t, 16> b{};
  for (auto& x : b) x = static_cast<std::uint8_t>(rng.next());
  return IpAddress::v6(b);
}

// E-29
TEST(FlowHash, IsTheSameSeenFromBothEnds) {
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    const bool v6 = i % 2 != 0;
    const IpAddress a = random_address(rng, v6), b = random_address(rng, v6);
    const auto p = static_cast<std::uint16_t>(rng.next()),
               q = static_cast<std::uint16_t>(rng.next());
    ASSERT_EQ(flow_hash(a, p, b, q), flow_hash(b, q, a, p));
  }
}

// Two processes, possibly of different versions, compare their results: the function must not
// change.
TEST(FlowHash, IsFixed) {
  const auto v4 = flow_hash(IpAddress::v4(10, 0, 0, 1), 4791, IpAddress::v4(10, 0, 0, 2), 50000);
  const auto v6 =
      flow_hash(*IpAddress::parse("fd00::1"), 4791, *IpAddress::parse("fd00::2"), 50000);
  EXPECT_EQ(v4, 4821487983254342329ULL);
  EXPECT_EQ(v6, 238213565815993014ULL);
}

TEST(FlowHash, SwappingOnlyThePortsChangesTheHash) {
  const IpAddress a = IpAddress::v4(10, 0, 0, 1), b = IpAddress::v4(10, 0, 0, 2);
  EXPECT_NE(flow_hash(a, 1, b, 2), flow_hash(a, 2, b, 1));
  EXPECT_NE(flow_hash(a, 1, b, 2), flow_hash(a, 1, b, 3));
}

TEST(FlowHash, SpreadsConsecutivePortsOverTheQueues) {
  for (const bool v6 : {false, true}) {
    const IpAddress a = *IpAddress::parse(v6 ? "fd00::1" : "10.0.0.1");
    const IpAddress b = *IpAddress::parse(v6 ? "fd00::2" : "10.0.0.2");
    for (const std::uint32_t queues : {2u, 3u, 8u, 16u}) {
      std::vector<int> hits(queues);
      constexpr int kFlows = 16000;
      for (int i = 0; i < kFlows; ++i) {
        ++hits[flow_queue(flow_hash(a, static_cast<std::uint16_t>(32768 + i), b, 4791), queues)];
      }
      const double mean = double{kFlows} / queues;
      for (const int h : hits) EXPECT_NEAR(h, mean, mean * 0.2) << queues << " queues";
    }
  }
}

TEST(FlowHash, DistinctFlowsHashDifferently) {
  std::set<std::uint64_t> seen;
  for (std::uint32_t host = 0; host < 256; ++host) {
    for (std::uint16_t port = 1000; port < 1400; ++port) {
      seen.insert(
          flow_hash(IpAddress::v4(0x0a000000 + host), port, IpAddress::v4(10, 1, 0, 1), 80));
    }
  }
  EXPECT_EQ(seen.size(), 256u * 400u);
}

TEST(KeyedFlowHash, DependsOnKeyDirectionAndEveryField) {
  const SipKey key = {1, 2};
  const IpAddress a = IpAddress::v4(10, 0, 0, 1), b = IpAddress::v4(10, 0, 0, 2);
  const auto base = keyed_flow_hash(key, a, 1, b, 2);
  EXPECT_NE(base, keyed_flow_hash({1, 3}, a, 1, b, 2));
  EXPECT_NE(base, keyed_flow_hash(key, b, 2, a, 1));
  EXPECT_NE(base, keyed_flow_hash(key, a, 2, b, 1));
  EXPECT_NE(base, keyed_flow_hash(key, a, 1, b, 3));
  const IpAddress c = *IpAddress::parse("fd00::1"), d = *IpAddress::parse("fd00::2");
  const auto base6 = keyed_flow_hash(key, c, 1, d, 2);
  EXPECT_NE(base6, keyed_flow_hash(key, d, 2, c, 1));
  EXPECT_NE(base6, keyed_flow_hash(key, c, 1, *IpAddress::parse("fd00:1::2"), 2));
}

}  // namespace
}  // namespace urnic
