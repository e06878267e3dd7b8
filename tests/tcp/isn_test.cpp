#include "tcp/isn.h"

#include <gtest/gtest.h>

#include <set>

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

TEST(Isn, TimestampOffsetPerPairOfHosts) {
  EXPECT_EQ(timestamp_offset(kKey, kLocal.ip, kRemote.ip),
            timestamp_offset(kKey, kLocal.ip, kRemote.ip));
  EXPECT_NE(timestamp_offset(kKey, kLocal.ip, kRemote.ip),
            timestamp_offset(kKey, kLocal.ip, IpAddress::v4(10, 0, 0, 3)));
  EXPECT_NE(timestamp_offset(kKey, kLocal.ip, kRemote.ip),
            timestamp_offset({7, 7}, kLocal.ip, kRemote.ip));
}

}  // namespace
}  // namespace urnic::tcp
