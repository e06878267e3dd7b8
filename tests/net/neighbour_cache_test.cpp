#include "net/neighbour_cache.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace urnic::net {
namespace {

using Kind = NeighbourCache::Lookup::Kind;
using Learned = NeighbourCache::Learned;
using State = NeighbourState;
using EventKind = NeighbourEvent::Kind;

const IpAddress kPeer = IpAddress::v4(10, 0, 0, 2);
const MacAddress kMac1 = *MacAddress::parse("02:00:00:00:00:01");
const MacAddress kMac2 = *MacAddress::parse("02:00:00:00:00:02");

Instant at(std::int64_t ms) {
  return Instant::from_ns(0) + Duration::ms(ms);
}

struct NeighbourTest : ::testing::Test {
  NeighbourTest() { cache.link_up(at(0)); }
  std::size_t requests() {
    const std::size_t n = cache.requests().size();
    cache.requests().clear();
    return n;
  }
  // Returns the kinds of the events so far and clears them.
  std::vector<EventKind> events() {
    std::vector<EventKind> kinds;
    for (const auto& e : cache.events()) kinds.push_back(e.kind);
    cache.events().clear();
    return kinds;
  }
  void run(Instant now) {
    while (cache.run_one(now)) {
    }
  }
  NeighbourCache cache{16, {}};
};

TEST_F(NeighbourTest, ResolvesOnAnAnswer) {
  EXPECT_EQ(cache.lookup(kPeer, at(0)).kind, Kind::Pending);
  ASSERT_EQ(cache.requests().size(), 1u);
  EXPECT_EQ(cache.requests()[0].address, kPeer);
  EXPECT_FALSE(cache.requests()[0].to);
  requests();
  EXPECT_EQ(cache.lookup(kPeer, at(10)).kind, Kind::Pending);
  EXPECT_EQ(requests(), 0u);  // one request, not one per lookup
  EXPECT_EQ(cache.advertised(kPeer, {kMac1, true, true}, at(20)), Learned::New);
  EXPECT_EQ(events(), std::vector{EventKind::Usable});
  EXPECT_EQ(cache.lookup(kPeer, at(20)).mac, kMac1);
  EXPECT_EQ(cache.state(kPeer, at(20)), State::Reachable);
  EXPECT_TRUE(cache.next_deadline().is_never());  // an idle cache has no timer (E-39)
}

TEST_F(NeighbourTest, GivesUpAfterThreeRequestsOneSecondApart) {
  cache.lookup(kPeer, at(0));
  EXPECT_EQ(requests(), 1u);
  EXPECT_EQ(cache.next_deadline(), at(1000));
  run(at(999));
  EXPECT_EQ(requests(), 0u);
  run(at(1000));
  EXPECT_EQ(requests(), 1u);
  run(at(2000));
  EXPECT_EQ(requests(), 1u);
  EXPECT_TRUE(events().empty());
  run(at(3000));
  EXPECT_EQ(requests(), 0u);
  EXPECT_EQ(events(), std::vector{EventKind::Failed});
  EXPECT_EQ(cache.lookup(kPeer, at(3001)).kind, Kind::Unreachable);
  // The failure is kept for a second; then the next use tries again.
  EXPECT_EQ(cache.lookup(kPeer, at(4000)).kind, Kind::Pending);
  EXPECT_EQ(requests(), 1u);
}

TEST_F(NeighbourTest, LatePollingDoesNotDelayTheSchedule) {
  cache.lookup(kPeer, at(0));
  requests();
  run(at(10000));  // one call handles all deadlines
  EXPECT_EQ(requests(), 2u);
  EXPECT_EQ(events(), std::vector{EventKind::Failed});
  EXPECT_EQ(cache.lookup(kPeer, at(10000)).kind, Kind::Pending);  // failed at 3 s; hold time over
}

TEST_F(NeighbourTest, AnAnswerAfterAFailureIsAccepted) {
  cache.lookup(kPeer, at(0));
  run(at(3000));
  events();
  EXPECT_EQ(cache.advertised(kPeer, {kMac1, true, true}, at(3100)), Learned::New);
  EXPECT_EQ(events(), std::vector{EventKind::Usable});
  EXPECT_EQ(cache.lookup(kPeer, at(3100)).kind, Kind::Mac);
}

TEST_F(NeighbourTest, AgesToStaleThenDelayThenProbe_RFC4861_7_3) {
  cache.lookup(kPeer, at(0));
  cache.advertised(kPeer, {kMac1, true, true}, at(0));
  requests();
  events();
  EXPECT_EQ(cache.state(kPeer, at(29999)), State::Reachable);
  EXPECT_EQ(cache.state(kPeer, at(30000)), State::Stale);
  EXPECT_EQ(cache.lookup(kPeer, at(40000)).mac, kMac1);  // used while stale
  EXPECT_EQ(cache.state(kPeer, at(40000)), State::Delay);
  EXPECT_EQ(cache.next_deadline(), at(45000));
  run(at(45000));
  EXPECT_EQ(cache.state(kPeer, at(45000)), State::Probe);
  ASSERT_EQ(cache.requests().size(), 1u);
  EXPECT_EQ(cache.requests()[0].to, kMac1);  // unicast
  requests();
  EXPECT_EQ(cache.lookup(kPeer, at(45500)).kind, Kind::Mac);
  run(at(48000));
  EXPECT_EQ(requests(), 2u);
  EXPECT_EQ(events(), std::vector{EventKind::Failed});
  EXPECT_EQ(cache.lookup(kPeer, at(48001)).kind, Kind::Unreachable);
}

TEST_F(NeighbourTest, UpperLayerProgressConfirms) {
  cache.lookup(kPeer, at(0));
  cache.advertised(kPeer, {kMac1, true, true}, at(0));
  cache.lookup(kPeer, at(31000));  // Delay
  cache.confirm(kPeer, at(32000));
  EXPECT_EQ(cache.state(kPeer, at(32000)), State::Reachable);
  EXPECT_TRUE(cache.next_deadline().is_never());
  cache.confirm(IpAddress::v4(10, 0, 0, 99), at(32000));  // unknown: no effect
  EXPECT_EQ(cache.size(), 1u);
}

TEST_F(NeighbourTest, DoubtStartsProbingAtOnce) {
  cache.lookup(kPeer, at(0));
  cache.advertised(kPeer, {kMac1, true, true}, at(0));
  requests();
  cache.doubt(kPeer, at(100));
  EXPECT_EQ(cache.state(kPeer, at(100)), State::Probe);
  EXPECT_EQ(requests(), 1u);
  cache.doubt(kPeer, at(200));  // already probing
  EXPECT_EQ(requests(), 0u);
  cache.advertised(kPeer, {kMac1, true, true}, at(300));
  EXPECT_EQ(cache.state(kPeer, at(300)), State::Reachable);
}

TEST_F(NeighbourTest, UnsolicitedAnswersCreateNoEntry) {
  EXPECT_EQ(cache.advertised(kPeer, {kMac1, false, true}, at(0)), Learned::Ignored);
  EXPECT_EQ(cache.advertised(kPeer, {kMac1, true, true}, at(0)), Learned::Ignored);
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(NeighbourTest, AMovedNeighbourIsReportedAndStale) {
  cache.learn(kPeer, kMac1, at(0));
  events();
  EXPECT_EQ(cache.advertised(kPeer, {kMac2, false, true}, at(10)), Learned::Changed);
  EXPECT_EQ(cache.events().at(0).mac, kMac2);
  EXPECT_EQ(events(), std::vector{EventKind::Usable});
  EXPECT_EQ(cache.state(kPeer, at(10)), State::Stale);
}

TEST_F(NeighbourTest, WithoutOverrideAnotherMacOnlyMakesTheEntryStale_RFC4861_7_2_5) {
  cache.lookup(kPeer, at(0));
  cache.advertised(kPeer, {kMac1, true, true}, at(0));
  EXPECT_EQ(cache.advertised(kPeer, {kMac2, true, false}, at(10)), Learned::Ignored);
  EXPECT_EQ(cache.state(kPeer, at(10)), State::Stale);
  EXPECT_EQ(cache.lookup(kPeer, at(10)).mac, kMac1);
  // No link-layer address, solicited: the known MAC is confirmed.
  EXPECT_EQ(cache.advertised(kPeer, {std::nullopt, true, false}, at(20)), Learned::Same);
  EXPECT_EQ(cache.state(kPeer, at(20)), State::Reachable);
}

TEST_F(NeighbourTest, LearningTheSameMacAgainProvesNothing) {
  cache.lookup(kPeer, at(0));
  cache.advertised(kPeer, {kMac1, true, true}, at(0));
  EXPECT_EQ(cache.learn(kPeer, kMac1, at(5)), Learned::Same);
  EXPECT_EQ(cache.state(kPeer, at(5)), State::Reachable);
  EXPECT_EQ(cache.state(kPeer, at(30001)), State::Stale);
}

TEST_F(NeighbourTest, LearningCompletesAPendingResolution) {
  cache.lookup(kPeer, at(0));
  EXPECT_EQ(cache.learn(kPeer, kMac1, at(5)), Learned::New);
  EXPECT_EQ(events(), std::vector{EventKind::Usable});
  EXPECT_EQ(cache.lookup(kPeer, at(5)).mac, kMac1);
}

TEST_F(NeighbourTest, WhileTheLinkIsDownNothingIsRequestedOrFails) {
  cache.link_down();
  EXPECT_EQ(cache.lookup(kPeer, at(0)).kind, Kind::Pending);
  EXPECT_EQ(requests(), 0u);
  EXPECT_TRUE(cache.next_deadline().is_never());
  cache.link_up(at(5000));
  EXPECT_EQ(requests(), 1u);
  EXPECT_EQ(cache.next_deadline(), at(6000));
}

TEST_F(NeighbourTest, LinkUpForgetsKnownMacs) {
  cache.learn(kPeer, kMac1, at(0));
  cache.lookup(kPeer, at(0));  // Delay, armed
  cache.link_down();
  EXPECT_EQ(cache.lookup(kPeer, at(1)).mac, kMac1);
  cache.link_up(at(2));
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_TRUE(cache.next_deadline().is_never());
  EXPECT_EQ(cache.lookup(kPeer, at(3)).kind, Kind::Pending);
}

TEST_F(NeighbourTest, FullTableEvictsTheLeastRecentlyUsed) {
  for (std::uint32_t i = 0; i < 16; ++i) cache.learn(IpAddress::v4(0x0a000100 + i), kMac1, at(i));
  cache.lookup(IpAddress::v4(0x0a000100), at(100));  // the oldest becomes the newest
  events();
  cache.learn(IpAddress::v4(0x0a000200), kMac1, at(200));
  EXPECT_EQ(cache.size(), 16u);
  ASSERT_EQ(cache.events().size(), 2u);
  EXPECT_EQ(cache.events()[0].kind, EventKind::Forgotten);
  EXPECT_EQ(cache.events()[0].address, IpAddress::v4(0x0a000101));
  EXPECT_TRUE(cache.state(IpAddress::v4(0x0a000100), at(200)));
  EXPECT_EQ(cache.evictions(), 1u);
}

TEST_F(NeighbourTest, AScanOfTheLinkCannotEvictWorkingNeighbours) {
  for (std::uint32_t i = 0; i < 12; ++i) cache.learn(IpAddress::v4(0x0a000100 + i), kMac1, at(i));
  events();
  for (std::uint32_t i = 0; i < 1000; ++i) cache.lookup(IpAddress::v4(0x0a010000 + i), at(100));
  EXPECT_EQ(cache.size(), 16u);
  std::size_t alive = 0;
  for (std::uint32_t i = 0; i < 12; ++i) {
    alive += cache.state(IpAddress::v4(0x0a000100 + i), at(100)).has_value();
  }
  EXPECT_GE(alive, 11u);
  // Users waiting for an evicted entry are notified.
  std::size_t failed = 0;
  for (const auto& e : cache.events()) failed += e.kind == EventKind::Failed;
  EXPECT_GE(failed, 990u);
}

// For any sequence of events: the table stays within its limit, a timer exists exactly while
// something waits, and time never runs backwards.
TEST(NeighbourCacheRandom, InvariantsHoldUnderRandomUse) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    NeighbourCache cache(32, {});
    Instant now = at(0);
    bool up = false;
    for (int i = 0; i < 5000; ++i) {
      now = now + Duration::ms(static_cast<std::int64_t>(rng.below(400)));
      const IpAddress a = IpAddress::v4(0x0a000000 + static_cast<std::uint32_t>(rng.below(64)));
      const MacAddress m = rng.chance(0.5) ? kMac1 : kMac2;
      switch (rng.below(9)) {
        case 0:
          cache.learn(a, m, now);
          break;
        case 1:
          cache.advertised(
              a,
              {rng.chance(0.8) ? std::optional(m) : std::nullopt, rng.chance(0.5), rng.chance(0.5)},
              now);
          break;
        case 2:
          cache.confirm(a, now);
          break;
        case 3:
          cache.doubt(a, now);
          break;
        case 4:
          if (!rng.chance(0.02)) break;
          if (up) {
            cache.link_down();
          } else {
            cache.link_up(now);
          }
          up = !up;
          break;
        default:
          cache.lookup(a, now);
      }
      while (cache.run_one(now)) {
      }
      ASSERT_LE(cache.size(), 32u);
      ASSERT_GT(cache.next_deadline(), now);
      bool waiting = false;
      for (std::uint32_t k = 0; k < 64; ++k) {
        const auto s = cache.state(IpAddress::v4(0x0a000000 + k), now);
        waiting |= s == State::Incomplete || s == State::Delay || s == State::Probe;
      }
      ASSERT_EQ(!cache.next_deadline().is_never(), waiting && up);
      cache.requests().clear();
      cache.events().clear();
    }
  }
}

}  // namespace
}  // namespace urnic::net
