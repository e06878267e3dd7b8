#include "tcp/isn.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tcp/host_keys.h"
#include "tcp/port_choice.h"

namespace urnic::tcp {
namespace {

const SipKey kKey{1, 2};
const SocketAddress kLocal{IpAddress::v4(10, 0, 0, 1), 1000};
const SocketAddress kRemote{IpAddress::v4(10, 0, 0, 2), 80};

TEST(Isn, AdvancesOnePerFourMicroseconds_RFC6528) {
  const Instant t = Instant::from_ns(123456789000);
  const Seq first = initial_sequence(kKey, kLocal, kRemote, t);
  EXPECT_EQ(initial_sequence(kKey, kLocal, kRemote, t + Duration::us(4)) - first, 1);
  EXPECT_EQ(initial_sequence(kKey, kLocal, kRemote, t + Duration::ms(4)) - first, 1000);
  EXPECT_EQ(initial_sequence(kKey, kLocal, kRemote, t), first);
}

TEST(Isn, DependsOnTheSecretAndOnAllFourParts) {
  const Instant t = Instant::from_ns(0);
  std::set<std::uint32_t> seen;
  const auto add = [&](const SipKey& k, const SocketAddress& l, const SocketAddress& r) {
    return seen.insert(initial_sequence(k, l, r, t).value()).second;
  };
  EXPECT_TRUE(add(kKey, kLocal, kRemote));
  EXPECT_TRUE(add({1, 3}, kLocal, kRemote));
  EXPECT_TRUE(add(kKey, {kLocal.ip, 1001}, kRemote));
  EXPECT_TRUE(add(kKey, {IpAddress::v4(10, 0, 0, 3), 1000}, kRemote));
  EXPECT_TRUE(add(kKey, kLocal, {kRemote.ip, 81}));
  EXPECT_TRUE(add(kKey, kLocal, {IpAddress::v4(10, 0, 0, 4), 80}));
  EXPECT_TRUE(add(kKey, kRemote, kLocal));
  EXPECT_TRUE(add(kKey, {*IpAddress::parse("fd00::1"), 1000}, {*IpAddress::parse("fd00::2"), 80}));
}

// proves: E-46
TEST(Isn, TimestampOffsetPerConnection) {
  const auto at = [](const SipKey& key, const SocketAddress& l, const SocketAddress& r) {
    return timestamp_offset(key, l, r);
  };
  const std::uint32_t one = at(kKey, kLocal, kRemote);
  EXPECT_EQ(one, at(kKey, kLocal, kRemote)) << "a later incarnation goes on from there";
  EXPECT_NE(one, at(kKey, kLocal, {IpAddress::v4(10, 0, 0, 3), kRemote.port}));
  EXPECT_NE(one, at(kKey, {kLocal.ip, 1001}, kRemote));
  EXPECT_NE(one, at(kKey, kLocal, {kRemote.ip, 81}));
  EXPECT_NE(one, at({7, 7}, kLocal, kRemote));
}

// proves: E-49
TEST(HostKeys, AreDifferentAndRepeatFromTheSeed) {
  const auto list = [](const HostKeys& k) {
    std::vector<std::uint64_t> all;
    for (const SipKey* key :
         {&k.isn, &k.timestamps, &k.cookies, &k.ports, &k.challenges, &k.flows}) {
      all.push_back(key->k0);
      all.push_back(key->k1);
    }
    return all;
  };
  const auto a = list(HostKeys(1)), b = list(HostKeys(2));
  EXPECT_EQ(a, list(HostKeys(1)));
  std::set<std::uint64_t> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  EXPECT_EQ(all.size(), a.size() + b.size());
}

// proves: E-49
TEST(PortChoice, FindsTheLastFreePortAndNeverTheOwnEnd) {
  PortChoice ports({1, 2}, 100, 103);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ports.choose(kLocal.ip, kRemote, [](std::uint16_t p) { return p != 102; }), 102);
  }
  EXPECT_EQ(ports.choose(kLocal.ip, kRemote, [](std::uint16_t) { return true; }), 0);
  const SocketAddress own{kLocal.ip, 101};
  EXPECT_EQ(ports.choose(kLocal.ip, own, [](std::uint16_t p) { return p != 101; }), 0)
      << "a connection with itself";
  EXPECT_EQ(
      PortChoice({1, 2}, 9, 8).choose(kLocal.ip, kRemote, [](std::uint16_t) { return false; }), 0);
}

// proves: E-49
TEST(PortChoice, TheNextPortIsNotTheFollowingNumber) {
  PortChoice a({1, 2}, 32768, 60999), b({1, 3}, 32768, 60999);
  const auto free = [](std::uint16_t) { return false; };
  std::set<std::uint16_t> seen;
  int steps = 0, same = 0;
  std::uint16_t last = 0;
  for (int i = 0; i < 200; ++i) {
    const std::uint16_t p = a.choose(kLocal.ip, kRemote, free);
    same += p == b.choose(kLocal.ip, kRemote, free) ? 1 : 0;
    steps += p == last + 1 ? 1 : 0;
    last = p;
    seen.insert(p);
  }
  EXPECT_GT(seen.size(), 190u);
  EXPECT_LT(steps, 3);
  EXPECT_LT(same, 3);
}

}  // namespace
}  // namespace urnic::tcp
