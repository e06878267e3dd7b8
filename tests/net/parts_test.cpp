// The frame queue and the route table.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "base/rng.h"
#include "net/frame_queue.h"
#include "net/route_table.h"

namespace urnic::net {
namespace {

TEST(FrameQueue, IsFifoAndBounded) {
  FrameQueue q(64);
  EXPECT_TRUE(q.empty());
  EXPECT_EQ(q.front_size(), 0u);
  EXPECT_TRUE(q.append(61).empty());
  EXPECT_TRUE(q.append(0).empty());
  EXPECT_TRUE(q.append(SIZE_MAX).empty());
  ASSERT_EQ(q.append(20).size(), 20u);
  ASSERT_EQ(q.append(30).size(), 30u);
  EXPECT_TRUE(q.append(7).empty());
  std::uint8_t out[64];
  EXPECT_EQ(q.pop({out, 19}), 0u);  // the frame stays
  EXPECT_EQ(q.pop(out), 20u);
  EXPECT_EQ(q.append(7).size(), 7u);  // moved to the front
  EXPECT_EQ(q.pop(out), 30u);
  EXPECT_EQ(q.pop(out), 7u);
  EXPECT_EQ(q.pop(out), 0u);
}

TEST(FrameQueue, KeepsContentsThroughCompaction) {
  constexpr std::uint64_t kSeed = 2;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  FrameQueue q(500);
  std::deque<std::vector<std::uint8_t>> model;
  for (int i = 0; i < 20000; ++i) {
    if (rng.chance(0.5)) {
      const std::size_t n = rng.between(1, 120);
      const MutBytes room = q.append(n);
      if (room.empty()) continue;
      for (auto& b : room) {
        ASSERT_EQ(b, 0);
        b = static_cast<std::uint8_t>(rng.next());
      }
      model.emplace_back(room.begin(), room.end());
    } else {
      std::vector<std::uint8_t> out(120);
      const std::size_t n = q.pop(out);
      ASSERT_EQ(n == 0, model.empty());
      if (n == 0) continue;
      out.resize(n);
      ASSERT_EQ(out, model.front());
      model.pop_front();
    }
  }
}

IpAddress ip(const char* s) {
  return *IpAddress::parse(s);
}
Route route(const char* to, const char* by = nullptr) {
  Route r{*IpPrefix::parse(to), std::nullopt};
  if (by != nullptr) r.gateway = ip(by);
  return r;
}

// proves: E-30
TEST(RouteTable, LongestPrefixWins) {
  RouteTable t;
  t.add(route("0.0.0.0/0", "10.0.0.254"));
  t.add(route("10.0.0.0/24"));
  t.add(route("10.0.0.128/25", "10.0.0.7"));
  t.add(route("10.0.0.200/32", "10.0.0.8"));
  t.add(route("2001:db8::/64"));
  EXPECT_EQ(t.lookup(ip("192.0.2.1"))->gateway, ip("10.0.0.254"));
  EXPECT_EQ(t.lookup(ip("10.0.0.5"))->gateway, std::nullopt);
  EXPECT_EQ(t.lookup(ip("10.0.0.129"))->gateway, ip("10.0.0.7"));
  EXPECT_EQ(t.lookup(ip("10.0.0.200"))->gateway, ip("10.0.0.8"));
  EXPECT_NE(t.lookup(ip("2001:db8::9")), nullptr);
  EXPECT_EQ(t.lookup(ip("2001:db9::9")), nullptr);  // the IPv4 default does not apply to IPv6
}

TEST(RouteTable, SameDestinationIsReplaced) {
  RouteTable t;
  t.add(route("10.1.0.0/16", "10.0.0.1"));
  t.add(route("10.1.2.3/16", "10.0.0.2"));  // host bits do not make a different route
  EXPECT_EQ(t.all().size(), 1u);
  EXPECT_EQ(t.lookup(ip("10.1.9.9"))->gateway, ip("10.0.0.2"));
}

}  // namespace
}  // namespace urnic::net
