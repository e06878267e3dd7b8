// Forged frames (E-46): SYNs from addresses that no other host has, and frames that would make an
// engine talk to itself; the limit of challenge ACKs; timestamps that do not reveal the clock.
#include <gtest/gtest.h>

#include "tests/support/hand_peer.h"

namespace urnic::test {
namespace {

// proves: E-46
TEST(Forged, ASynFromTheWireWithAnImpossibleSourceIsDroppedAndCounted) {
  HandPeer p;
  ASSERT_TRUE(p.up());
  const IpAddress own = IpAddress::v4(10, 0, 0, 2);
  const auto tables = p.node().engine().tables();
  const auto dropped = [&] {
    return p.node().engine().interface().counters().dropped_by(net::DropReason::Source);
  };
  const SocketAddress sources[] = {
      {own, 7000},                               // our own end: we would answer ourselves
      {own, 1234},                               // another port of ours
      {IpAddress::v4(10, 0, 0, 255), 1234},      // the broadcast address of our network
      {IpAddress::v4(10, 0, 0, 0), 1234},        // ... and its old form
      {IpAddress::v4(127, 0, 0, 1), 1234},       // loopback
      {IpAddress::v4(224, 0, 0, 5), 1234},       // a multicast group
      {IpAddress::v4(255, 255, 255, 255), 1234}  // the limited broadcast address
  };
  std::uint64_t before = dropped();
  for (const SocketAddress& from : sources) {
    EXPECT_TRUE(p.forged_syn(from, own).empty()) << from.ip.to_string();
    EXPECT_EQ(dropped(), ++before) << from.ip.to_string();
    EXPECT_EQ(p.node().engine().tables(), tables) << from.ip.to_string();
    EXPECT_GT(p.node().engine().next_deadline(), p.now) << "the engine may sleep";
  }
  // To a broadcast or multicast address: not for us.
  for (const IpAddress to : {IpAddress::v4(10, 0, 0, 255), IpAddress::v4(224, 0, 0, 5)}) {
    EXPECT_TRUE(p.forged_syn({IpAddress::v4(10, 0, 0, 1), 1234}, to).empty());
    EXPECT_EQ(p.node().engine().tables(), tables);
  }
}

TEST(Forged, AnHonestSynStillGetsThrough) {
  HandPeer p;
  ASSERT_TRUE(p.up());
  EXPECT_EQ(p.forged_syn({IpAddress::v4(10, 0, 0, 1), 1234}, IpAddress::v4(10, 0, 0, 2)).size(),
            1u);
}

// proves: E-46
TEST(Forged, ChallengesAreLimitedPerConnectionAndCounted_RFC5961_7) {
  HandPeer p;
  ASSERT_TRUE(p.up());
  Cut rst;
  rst.at = 100;
  rst.flags = tcp::kRst;
  std::size_t answers = 0;
  for (int i = 0; i < 20; ++i) answers += p.burst({rst}).size();
  EXPECT_GE(answers, 5u);
  EXPECT_LE(answers, 10u);
  const EngineStats s = p.engine_stats();
  EXPECT_EQ(s.iwarp.challenge_acks, answers);
  EXPECT_EQ(s.iwarp.challenge_acks_withheld, 20 - answers);
}

// proves: E-46
TEST(Forged, TimestampsDoNotRevealTheClock_RFC7323_5_4) {
  HandPeer p;
  p.options.tcp.timestamps = true;
  ASSERT_TRUE(p.up());
  const tcp::Config& config = p.connection()->tcb.config;
  EXPECT_NE(config.ts_offset, 0u);
  EXPECT_NE(config.challenge_key, 0u);
  // Another seed gives another clock.
  HandPeer q;
  q.options.seed = 6;
  q.options.tcp.timestamps = true;
  ASSERT_TRUE(q.up());
  EXPECT_NE(q.connection()->tcb.config.ts_offset, config.ts_offset);
  EXPECT_NE(q.connection()->tcb.snd.iss, p.connection()->tcb.snd.iss);
}

}  // namespace
}  // namespace urnic::test
