// FAST and SLOW queue pairs of RoCE through the engine (S-1): settings, the cost of a loss with
// either, and the statistics.
#include <gtest/gtest.h>

#include "device/engine_options.h"
#include "roce/control_stats.h"
#include "tests/roce/engine_ends.h"
#include "urnic/config.h"

namespace urnic::test {
namespace {

class RoceLoss : public RoceEnds {
 protected:
  // Many Writes; the wire loses packets, and some of their repetitions.
  void write_through(ib::ConnectionType type) {
    sim::PairOptions o = both();
    o.left.roce.probe = true;
    o.right.roce.loss.type = type;
    up(o);
    rooms(64 * kEach);
    pair->run_for(Duration::ms(10));  // neighbors are resolved
    pair->set_faults_left("loss=0.05,seed=3");
    for (std::uint64_t i = 0; i < 60; ++i) {
      post(*left, verbs::WrOp::Write, i, kEach, i * kEach);
    }
    ASSERT_TRUE(run(60));
    pair->set_faults_left("");
    EXPECT_EQ(Bytes(theirs->bytes.begin(), theirs->bytes.begin() + 60 * kEach),
              Bytes(ours->bytes.begin(), ours->bytes.begin() + 60 * kEach));
  }
  RoceStats seen() { return pair->right().engine().roce_control().stats_of(*right).roce; }
  RoceStats sent() { return pair->left().engine().roce_control().stats_of(*left).roce; }
  static constexpr std::uint32_t kEach = 4096;
};

// proves: S-1
TEST_F(RoceLoss, FastKeepsPacketsPastALossAndSlowReceivesThemAgain) {
  write_through(ib::ConnectionType::Fast);
  const RoceStats fast = seen();
  const std::uint64_t fast_repeated = sent().requests_repeated;
  EXPECT_TRUE(fast.fast);
  EXPECT_EQ(fast.slow_reason, "");
  EXPECT_GT(fast.requests_held, 0u);
  EXPECT_GT(fast.gap_recoveries, 0u);
  write_through(ib::ConnectionType::Slow);
  const RoceStats slow = seen();
  EXPECT_FALSE(slow.fast);
  EXPECT_EQ(slow.slow_reason, "initiated-slow");
  EXPECT_EQ(slow.requests_held, 0u);
  EXPECT_EQ(slow.gap_recoveries, 0u);
  EXPECT_GT(sent().requests_repeated, fast_repeated);
}

// proves: S-1
TEST_F(RoceLoss, AQueuePairMayOverrideTheDeviceTypeAndKeepsItAfterReset) {
  sim::PairOptions o = both();
  o.right.roce.loss.type = ib::ConnectionType::Fast;
  up(o);
  roce::ControlPath& roce = pair->right().engine().roce_control();
  ib::LossRules rules = pair->right().engine().options().roce.loss;
  rules.type = ib::ConnectionType::Slow;
  verbs::QueuePair* const slow = roce.create_qp(verbs::Service::Rc, pair->right().pd, {},
                                                right->send_cq, right->receive_cq, &rules);
  ASSERT_NE(slow, nullptr);
  for (int life = 0; life < 2; ++life) {
    connect(pair->right(), *slow, {}, 1, left->number(), 0, pair->now());
    EXPECT_EQ(roce.stats_of(*slow).roce.slow_reason, "initiated-slow");
    roce::QpChange reset;
    reset.to = verbs::QpState::Reset;
    ASSERT_EQ(roce.move(*slow, reset, pair->now()), roce::Modified::Ok);
  }
  EXPECT_TRUE(seen().fast);
}

// proves: S-8
TEST_F(RoceLoss, ADowngradeIsReportedWithItsReasonAndCounted) {
  sim::PairOptions o = both();
  o.right.roce.loss.type = ib::ConnectionType::Fast;
  for (const bool store_full : {false, true}) {
    o.right.roce.loss.max_recovery_attempts = store_full ? 32 : 0;
    o.right.roce.loss.store_packets = store_full ? 1 : 512;
    o.right.roce.loss.upgrade_after = 1000;
    up(o);
    rooms(65536);
    pair->run_for(Duration::ms(10));
    pair->set_faults_left("at=loss:1");
    post(*left, verbs::WrOp::Write, 0, 60000, 0);
    ASSERT_TRUE(run(1));
    EXPECT_EQ(seen().slow_reason, store_full ? "store-full" : "recovery-exhausted");
    EXPECT_EQ(seen().roce_downgrades, 1u);
    EXPECT_EQ(seen().store_full_downgrades, store_full ? 1u : 0u);
    EXPECT_EQ(seen().gap_recoveries, store_full ? 1u : 0u);
    EXPECT_EQ(seen().roce_upgrades, 0u);
    for (std::uint64_t i = 0; i < 20; ++i) post(*left, verbs::WrOp::Write, i + 1, 60000, 0);
    ASSERT_TRUE(run(21));
    EXPECT_EQ(seen().roce_upgrades, 1u);
    EXPECT_TRUE(seen().fast);
    EXPECT_EQ(seen().slow_reason, "");
    // The engine's totals include them, even after the queue pair has been destroyed.
    pair->right().engine().roce_control().destroy(right, pair->now());
    EngineStats s;
    roce::fill_stats(pair->right().engine().roce_control(), &s);
    EXPECT_EQ(s.ended.roce.roce_downgrades, 1u);
    EXPECT_EQ(s.ended.roce.store_full_downgrades, store_full ? 1u : 0u);
    EXPECT_EQ(s.ended.roce.roce_upgrades, 1u);
    EXPECT_EQ(s.roce.held_bytes, 0u);
  }
}

// proves: S-3
TEST_F(RoceLoss, HeldMemoryIsReported) {
  sim::PairOptions o = both();
  o.right.roce.loss.type = ib::ConnectionType::Fast;
  up(o);
  rooms(8192);
  pair->run_for(Duration::ms(10));
  pair->set_faults_left("at=loss:1");
  post(*left, verbs::WrOp::Write, 0, 4096, 0);
  EngineStats s;
  ASSERT_TRUE(pair->run_until(
      [&] {
        roce::fill_stats(pair->right().engine().roce_control(), &s);
        return s.roce.held_bytes != 0;
      },
      Duration::s(1)));
  EXPECT_TRUE(run(1));
  roce::fill_stats(pair->right().engine().roce_control(), &s);
  EXPECT_EQ(s.roce.held_bytes, 0u);
}

// ---- benefits

class RoceGoodput : public RoceEnds {
 protected:
  // Virtual time for 32 MiB of Writes over 10 Gb/s and 100 us, with losses in both directions.
  Duration takes(ib::ConnectionType type, bool probe, const char* loss) {
    sim::PairOptions o = both();
    o.left.roce.probe = o.right.roce.probe = probe;
    o.right.roce.loss.type = type;
    const std::string line = "rate=10gbit,delay=100us";
    o.faults_left = o.faults_right = line;
    ByHand h;
    h.ack_timeout = 14;  // 67 ms
    h.retry_count = 7;
    up(o, h);
    rooms(kEach);
    pair->run_for(Duration::ms(10));
    pair->set_faults_left(line + ",loss=" + loss);
    pair->set_faults_right(line + ",loss=" + loss);
    const Instant from = pair->now();
    std::uint64_t posted = 0;
    const auto done = [&] {
      pair->left().drain_completions();
      const std::uint64_t n = pair->left().send_done.size();
      while (posted < kMany && posted - n < 64) {
        post(*left, verbs::WrOp::Write, posted++, kEach, 0);
      }
      return n >= kMany;
    };
    EXPECT_TRUE(pair->run_until(done, Duration::s(60)));
    return pair->now() - from;
  }
  static constexpr std::uint32_t kEach = 65536, kMany = 512;
};

// proves: S-4
TEST_F(RoceGoodput, With1PercentLossSlowTakesAtLeast30PercentLonger) {
  for (const bool probe : {true, false}) {
    const Duration fast = takes(ib::ConnectionType::Fast, probe, "0.01");
    const Duration slow = takes(ib::ConnectionType::Slow, probe, "0.01");
    EXPECT_LT(fast * 13, slow * 10) << probe;
  }
}

TEST_F(RoceGoodput, WithoutLossTheTypeMakesNoDifference) {
  EXPECT_EQ(takes(ib::ConnectionType::Fast, true, "0"), takes(ib::ConnectionType::Slow, true, "0"));
}

// ---- an empty receive queue

class RoceEmptyQueue : public RoceEnds {
 protected:
  static constexpr std::uint64_t kMany = 60;
  // Sends into a receive queue that has at most one receive, refilled a while after each use.
  // Returns the number of packets sent.
  std::uint64_t sends(std::uint32_t park, Duration refill = Duration::us(200),
                      Duration park_time = Duration::ms(10)) {
    sim::PairOptions o = both();
    o.right.roce.loss.type = ib::ConnectionType::Fast;
    o.right.roce.loss.rnr_park = park;
    o.right.roce.loss.rnr_park_time = park_time;
    o.right.roce.tell_credits = false;  // the peer gets no credits
    ByHand h;
    h.ack_timeout = 17;  // half a second
    up(o, h);
    rooms(65536);
    pair->run_for(Duration::ms(10));
    for (std::uint64_t i = 0; i < kMany; ++i) post(*left, verbs::WrOp::Send, i, 256, i * 256);
    for (std::uint64_t i = 0; i < kMany; ++i) {
      pair->run_for(refill);
      receive(*right, i, i * 256, 256);
      EXPECT_TRUE(run(0, i + 1)) << i;
    }
    EXPECT_TRUE(run(kMany, kMany));
    for (std::uint64_t i = 0; i < kMany; ++i) {
      EXPECT_EQ(pair->right().receive_done[i].completion.wr_id, i);
    }
    EXPECT_EQ(std::memcmp(inbox->bytes.data(), ours->bytes.data(), kMany * 256), 0);
    return pair->left().engine().roce_control().stats_of(*left).roce.requests_sent;
  }
  RoceStats seen() { return pair->right().engine().roce_control().stats_of(*right).roce; }
};

// proves: S-9
TEST_F(RoceEmptyQueue, SendsWaitForTheirReceivesAndAreNotRepeated) {
  const std::uint64_t parked = sends(64);
  EXPECT_EQ(parked, kMany);
  EXPECT_EQ(seen().rnr_naks_sent, 0u);
  EXPECT_EQ(seen().requests_parked, kMany);
  EXPECT_FALSE(right->starved.load()) << "who posts rings no more";
  const std::uint64_t letter = sends(0);
  EXPECT_GT(letter, 2 * kMany);
  EXPECT_GT(seen().rnr_naks_sent, 0u);
  EXPECT_EQ(seen().requests_parked, 0u);
}

// proves: S-9
TEST_F(RoceEmptyQueue, AfterTheTimeoutAnRnrNakIsSent) {
  sends(64, Duration::ms(3), Duration::ms(1));
  EXPECT_GE(seen().rnr_naks_sent, kMany);
  EXPECT_GE(seen().requests_parked, kMany);
}

// proves: S-9
TEST_F(RoceEmptyQueue, MoreThanTheLimitDrawAnRnrNak) {
  sends(4);
  EXPECT_GT(seen().rnr_naks_sent, 0u);
  EXPECT_GT(seen().requests_parked, 0u);
  EXPECT_TRUE(seen().fast);
}

// In Rtr there is no requester with a deadline.
// proves: S-9
TEST_F(RoceEmptyQueue, TheTimeoutAlsoRunsInRtr) {
  sim::PairOptions o = both();
  o.right.roce.loss.type = ib::ConnectionType::Fast;
  o.right.roce.loss.rnr_park = 8;
  pair = std::make_unique<sim::Pair>(o);
  left = pair->left().make_roce_qp();
  right = pair->right().make_roce_qp();
  roce::ControlPath& roce = pair->right().engine().roce_control();
  connect(pair->left(), *left, {}, 0, right->number(), 1, pair->now());
  ASSERT_EQ(roce.move(*right, to_init(), pair->now()), roce::Modified::Ok);
  ASSERT_EQ(roce.move(*right, to_rtr({}, 1, left->number(), 0), pair->now()), roce::Modified::Ok);
  rooms(4096);
  post(*left, verbs::WrOp::Send, 0, 256, 0);
  pair->run_for(Duration::ms(9));
  EXPECT_EQ(seen().requests_parked, 1u);
  EXPECT_EQ(seen().rnr_naks_sent, 0u);
  pair->run_for(Duration::ms(3));
  EXPECT_EQ(seen().rnr_naks_sent, 1u);
  pair->run_for(Duration::ms(2));
  receive(*right, 7, 0, 256);
  EXPECT_TRUE(run(1, 1));
}

// proves: S-9
TEST_F(RoceEmptyQueue, InErrorNothingWaitsAndHeldMemoryIsReturned) {
  sim::PairOptions o = both();
  o.right.roce.loss.type = ib::ConnectionType::Fast;
  o.right.roce.loss.rnr_park = 8;
  up(o);
  rooms(4096);
  post(*left, verbs::WrOp::Send, 0, 256, 0);
  pair->run_for(Duration::ms(5));
  EXPECT_EQ(seen().requests_parked, 1u);
  roce::ControlPath& roce = pair->right().engine().roce_control();
  for (const verbs::QpState to : {verbs::QpState::Error, verbs::QpState::Reset}) {
    roce::QpChange c;
    c.to = to;
    ASSERT_EQ(roce.move(*right, c, pair->now()), roce::Modified::Ok);
    EXPECT_EQ(roce.side().held_bytes(), 0u);
    EXPECT_FALSE(right->starved.load());
    pair->run_for(Duration::ms(50));
  }
}

TEST_F(RoceEmptyQueue, AResetOrDestroyedQueuePairStopsWaiting) {
  sim::PairOptions o = both();
  o.right.roce.loss.type = ib::ConnectionType::Fast;
  o.right.roce.loss.rnr_park = 8;
  for (const bool destroyed : {false, true}) {
    up(o);
    rooms(4096);
    post(*left, verbs::WrOp::Send, 0, 256, 0);
    pair->run_for(Duration::ms(5));
    EXPECT_EQ(seen().requests_parked, 1u);
    EXPECT_TRUE(right->starved.load());
    roce::ControlPath& roce = pair->right().engine().roce_control();
    if (destroyed) {
      roce.destroy(right, pair->now());
    } else {
      roce::QpChange c;
      c.to = verbs::QpState::Reset;
      ASSERT_EQ(roce.move(*right, c, pair->now()), roce::Modified::Ok);
      EXPECT_FALSE(right->starved.load());
    }
    EXPECT_EQ(roce.side().held_bytes(), 0u);
    pair->run_for(Duration::ms(50));  // the time passes, and nothing happens
  }
}

// proves: S-1
TEST(RoceLossSetting, DefaultsToFastAndUsesTheNamesOfIwarp) {
  const auto rules = [](std::initializer_list<std::pair<const char*, const char*>> settings) {
    Config c;
    for (const auto& [name, value] : settings) EXPECT_TRUE(c.set(name, value).ok()) << name;
    return device::options_from(c, "mem").roce;
  };
  const ib::LossRules usual = rules({}).loss;
  EXPECT_EQ(usual.type, ib::ConnectionType::Fast);
  EXPECT_EQ(usual.out_of_order, ib::OutOfOrder::Store);
  EXPECT_EQ(usual.store_packets, 512u);
  EXPECT_EQ(usual.max_recovery_attempts, 32u);
  EXPECT_EQ(usual.upgrade_after, 64u);
  EXPECT_EQ(usual.rnr_park, 64u);
  EXPECT_EQ(usual.rnr_park_time, Duration::ms(10));
  EXPECT_EQ(rules({}).held_bytes, std::size_t{64} << 20);
  const roce::Options other = rules({{"connection_type", "slow"},
                                     {"out_of_order", "drop"},
                                     {"held_packets", "7"},
                                     {"max_recovery_attempts", "5"},
                                     {"upgrade_after", "9"},
                                     {"rnr_park", "8"},
                                     {"rnr_park_ms", "4"},
                                     {"reassembly_pool", "3"}});
  EXPECT_EQ(other.loss.type, ib::ConnectionType::Slow);
  EXPECT_EQ(other.loss.out_of_order, ib::OutOfOrder::Drop);
  EXPECT_EQ(other.loss.store_packets, 7u);
  EXPECT_EQ(other.loss.max_recovery_attempts, 5u);
  EXPECT_EQ(other.loss.upgrade_after, 9u);
  EXPECT_EQ(other.loss.rnr_park, 8u);
  EXPECT_EQ(other.loss.rnr_park_time, Duration::ms(4));
  EXPECT_EQ(other.held_bytes, std::size_t{3} << 20);
}

}  // namespace
}  // namespace urnic::test
