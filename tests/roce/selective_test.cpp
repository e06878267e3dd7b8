// Selective repeat through the engine (S-6), and how two ends agree on it (S-7).
#include <gtest/gtest.h>

#include <cstdio>

#include "roce/context.h"
#include "roce/control_stats.h"
#include "tests/roce/engine_ends.h"
#include "urnic/stats.h"

namespace urnic::test {
namespace {

class RoceSelective : public RoceEnds {
 protected:
  static sim::PairOptions options(bool left, bool right) {
    sim::PairOptions o = both();
    o.left.roce.selective = left;
    o.right.roce.selective = right;
    for (engine::Options* e : {&o.left, &o.right}) {
      e->roce.probe = true;
      e->roce.loss.type = ib::ConnectionType::Fast;
    }
    return o;
  }
  RoceStats of(sim::Node& node, const verbs::QueuePair& qp) {
    return node.engine().roce_control().stats_of(qp).roce;
  }
  RoceHostStats host(sim::Node& node) {
    EngineStats s;
    roce::fill_stats(node.engine().roce_control(), &s);
    return s.roce;
  }
  // Virtual time for 32 MiB over 10 Gb/s and 100 us, with losses in both directions.
  Duration takes(bool selective, verbs::WrOp op, const char* faults) {
    sim::PairOptions o = options(selective, selective);
    const std::string line = "rate=10gbit,delay=100us";
    o.faults_left = o.faults_right = line;
    ByHand h;
    h.ack_timeout = 14;  // 67 ms
    h.retry_count = 7;
    h.depth = 16;
    up(o, h);
    rooms(kEach);
    pair->run_for(Duration::ms(20));
    pair->set_faults_left(line + faults);
    pair->set_faults_right(line + faults);
    const Instant from = pair->now();
    std::uint64_t posted = 0;
    const auto done = [&] {
      pair->left().drain_completions();
      const std::uint64_t n = pair->left().send_done.size();
      while (posted < kMany && posted - n < 64) post(*left, op, posted++, kEach, 0);
      return n >= kMany;
    };
    EXPECT_TRUE(pair->run_until(done, Duration::s(60)));
    return pair->now() - from;
  }
  static constexpr std::uint32_t kEach = 65536, kMany = 512;
};

// proves: S-7
TEST_F(RoceSelective, WithoutConnectionManagementAHelloIsAnsweredAndBothAgree) {
  up(options(true, true));
  pair->run_for(Duration::ms(200));
  EXPECT_TRUE(of(pair->left(), *left).selective);
  EXPECT_TRUE(of(pair->right(), *right).selective);
  EXPECT_TRUE(roce::context_of(*left).attributes.peer_parts);
  EXPECT_TRUE(roce::context_of(*right).attributes.peer_parts);
  for (sim::Node* n : {&pair->left(), &pair->right()}) {
    EXPECT_GE(host(*n).hellos_sent, 1u);
    EXPECT_LE(host(*n).hellos_sent, 4u);
    EXPECT_EQ(host(*n).hellos_refused, 0u);
  }
}

// proves: S-7
TEST_F(RoceSelective, WithOneEndSwitchedOffNothingIsAgreed) {
  up(options(true, false));
  pair->run_for(Duration::s(2));
  EXPECT_FALSE(of(pair->left(), *left).selective);
  EXPECT_EQ(host(pair->left()).hellos_sent, 3u);
  EXPECT_EQ(host(pair->right()).hellos_received, 0u);
  EXPECT_EQ(host(pair->right()).rx_wrong_service, 3u);
  EXPECT_EQ(host(pair->right()).hellos_sent, 0u);
}

// proves: S-6
TEST_F(RoceSelective, OnlyLostPacketsAreRepeated) {
  for (const verbs::WrOp op : {verbs::WrOp::Write, verbs::WrOp::Read}) {
    for (const char* loss : {",loss=0.001", ",loss=0.01"}) {
      const Duration clean = takes(true, op, "");
      const Duration with = takes(true, op, loss);
      const RoceStats s = of(pair->left(), *left);
      const Duration without = takes(false, op, loss);
      std::printf("%s%s: of the clean goodput %.3f, without %.3f; %llu repeated\n",
                  op == verbs::WrOp::Write ? "writes" : "reads", loss,
                  static_cast<double>(clean.count_ns()) / static_cast<double>(with.count_ns()),
                  static_cast<double>(clean.count_ns()) / static_cast<double>(without.count_ns()),
                  static_cast<unsigned long long>(s.requests_repeated));
      if (op == verbs::WrOp::Write) {
        EXPECT_LT(with, without);
      } else {  // the missing part of a READ is requested alone from any peer (S-2)
        EXPECT_LT(with * 20, without * 21);
      }
      EXPECT_EQ(s.response_timeouts, 0u);
    }
  }
}

// proves: S-6
TEST_F(RoceSelective, ReorderingWithoutLossCostsAlmostNothing) {
  const Duration clean = takes(true, verbs::WrOp::Write, "");
  const Duration mixed = takes(true, verbs::WrOp::Write, ",reorder=0.02");
  EXPECT_LT(mixed * 10, clean * 11);
}

}  // namespace
}  // namespace urnic::test
