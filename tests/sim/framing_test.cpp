// Fig 3 and the framing policies over whole runs: the effect of corruption, misalignment and both
// limits of section 4 on a connection with markers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/workload.h"

namespace urnic::test {
namespace {

using fastpath::Reason;
using mpa::Policy;

struct Result {
  ConnectionStats left, right;
  bool ended = false;
  std::string bad, failures;

  std::uint64_t reason(Reason r) const {
    const auto i = static_cast<std::size_t>(r);
    return left.iwarp.reasons[i] + right.iwarp.reasons[i];
  }
  std::uint64_t downgrades() const { return left.iwarp.downgrades + right.iwarp.downgrades; }
};

class Framing : public ::testing::TestWithParam<Policy> {
 protected:
  engine::Options options(std::uint32_t attempts) const {
    engine::Options o;
    o.mpa.policy = GetParam();
    o.context.variant = fastpath::InLogicVariant::Fig3;
    o.context.max_recovery_attempts = attempts;
    o.tcp.rto_max = Duration::s(4);
    return o;
  }
  Result run(std::uint64_t seed, const engine::Options& e, const std::string& faults,
             std::size_t messages = 30) const {
    sim::PairOptions o;
    o.seed = seed;
    o.left = o.right = e;
    o.faults_left = o.faults_right = faults;
    sim::Pair pair(o);
    auto* left = pair.left().make_qp(64, 64);
    auto* right = pair.right().make_qp(64, 64);
    Result r;
    EXPECT_TRUE(pair.connect(*left, *right)) << seed;
    WorkloadOptions w;
    w.seed = seed;
    w.messages = messages;
    w.limit = Duration::s(2000);
    Workload work(pair, *left, *right, w);
    r.bad = work.run();
    r.ended = work.ended();
    r.failures = work.failures();
    r.left = pair.left().engine().iwarp().qp_stats(*left);
    r.right = pair.right().engine().iwarp().qp_stats(*right);
    return r;
  }
};

INSTANTIATE_TEST_SUITE_P(Policies, Framing,
                         ::testing::Values(Policy::Markers, Policy::AbsoluteMarkers,
                                           Policy::ModifiedLength),
                         [](const auto& p) {
                           std::string name(mpa::policy_name(p.param));
                           std::erase(name, '-');
                           return name;
                         });

const char* const kCorrupt = "corrupt=0.01,skip_handshake=on";

// proves
TEST_P(Framing, CertainCorruptionIsAlwaysRepairedByTcp) {
  std::uint64_t certain = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Result r = run(seed, options(32), kCorrupt);
    EXPECT_EQ(r.bad, "") << seed;
    EXPECT_FALSE(r.ended) << seed << ": " << r.failures;
    EXPECT_EQ(r.left.iwarp.bytes_slow + r.right.iwarp.bytes_slow, 0u) << seed;
    certain += r.reason(Reason::CrcCaseA) + r.reason(Reason::CrcCaseB);
  }
  EXPECT_GT(certain, 10u);
}

// proves: R-43
TEST_P(Framing, UncertainCorruptionIsRepairedToo) {
  std::uint64_t uncertain = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {  // loss makes segments arrive out of order
    const Result r =
        run(seed, options(32), "loss=0.05,reorder=0.2:4,corrupt=0.1,skip_handshake=on", 60);
    EXPECT_EQ(r.bad, "") << seed;
    EXPECT_FALSE(r.ended) << seed << ": " << r.failures;
    EXPECT_EQ(r.downgrades(), 0u) << seed;
    uncertain += r.left.iwarp.recovery_attempts + r.right.iwarp.recovery_attempts;
  }
  // Few: a known end or a marker settles nearly every case, and then it does not count
  // as an attempt.
  EXPECT_GT(uncertain, 10u);
}

// If a length is corrupted to a larger value, its bytes must arrive before the error is detected: a
// silent peer leaves the stream waiting (docs/framing.md). So this peer continues to send.
// proves: R-30
TEST_P(Framing, WithFig3OnlyACorruptedLengthTerminatesTheConnection) {
  std::uint64_t downgraded = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    sim::PairOptions o;
    o.seed = seed;
    o.left = o.right = options(0);
    o.faults_left = "corrupt=0.05,skip_handshake=on";
    sim::Pair pair(o);
    auto* left = pair.left().make_qp(64, 64);
    auto* right = pair.right().make_qp(64, 64);
    ASSERT_TRUE(pair.connect(*left, *right)) << seed;
    // Small messages: many length fields in a segment.
    std::vector<std::uint8_t> source(24, 0x5a), sink(24);
    const verbs::Sge sge{reinterpret_cast<std::uint64_t>(source.data()), 24,
                         pair.left().register_memory(source.data(), source.size(), 0)};
    verbs::SendWr wr;
    wr.op = verbs::WrOp::Write;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.remote_address = reinterpret_cast<std::uint64_t>(sink.data());
    wr.rkey = pair.right().register_memory(sink.data(), sink.size(),
                                           verbs::kLocalWrite | verbs::kRemoteWrite);
    const auto over = [&] { return left->state != verbs::QpState::Rts; };
    for (int i = 0; i < 500 && !over(); ++i) {
      while (!over() && pair.left().post_send(*left, wr, pair.now()) == verbs::Post::Ok) {
      }
      pair.run_for(Duration::us(500));
      pair.left().drain_completions();
    }
    pair.run_until(over, Duration::s(60));
    const ConnectionStats r = pair.right().engine().iwarp().qp_stats(*right);
    if (r.iwarp.downgrades == 0) continue;
    ++downgraded;
    EXPECT_TRUE(over()) << seed << ": nothing but corruption can have downgraded it";
    EXPECT_EQ(r.iwarp.ddp.terminates_sent, 1u) << seed;
  }
  EXPECT_GT(downgraded, 3u);
}

// proves
TEST_P(Framing, APeerWhoseSegmentsAreAlwaysRecutIsServedOnSlow) {
  for (const std::uint32_t attempts : {0u, 3u, 32u}) {
    const Result r = run(5, options(attempts), "reseg=1", 12);
    EXPECT_EQ(r.bad, "") << attempts;
    EXPECT_FALSE(r.ended) << r.failures;
    EXPECT_GT(r.left.iwarp.bytes_slow + r.right.iwarp.bytes_slow, 0u);
    EXPECT_GE(r.downgrades(), 1u);
  }
}

// proves: R-56
TEST_P(Framing, DownAndUpAgainKeepsDataAndCompletionsExact) {
  engine::Options o = options(0);
  o.context.upgrade_after = 1;
  std::uint64_t upgrades = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Result r = run(seed, o, "reseg=0.05,loss=0.01", 60);
    EXPECT_EQ(r.bad, "") << seed;
    EXPECT_FALSE(r.ended) << r.failures;
    upgrades += r.left.iwarp.upgrades + r.right.iwarp.upgrades;
  }
  EXPECT_GT(upgrades, 5u);
}

// proves
TEST_P(Framing, EveryDropDrawsOneDuplicateAckOrNone) {
  for (const bool on : {true, false}) {
    engine::Options o = options(32);
    o.context.immediate_dup_ack = on;
    const Result r = run(3, o, kCorrupt, 60);
    EXPECT_EQ(r.bad, "");
    const std::uint64_t drops = r.reason(Reason::CrcCaseA) + r.reason(Reason::CrcCaseB) +
                                r.reason(Reason::CrcLater) + r.left.iwarp.recovery_attempts +
                                r.right.iwarp.recovery_attempts + r.left.iwarp.empty_rq_drops +
                                r.right.iwarp.empty_rq_drops;
    EXPECT_GT(drops, 0u);
    EXPECT_EQ(r.left.iwarp.immediate_dup_acks + r.right.iwarp.immediate_dup_acks, on ? drops : 0u);
  }
}

// I-4, D4: two copies per payload byte on FAST: one removes the markers, one writes to memory.
// proves: R-2
TEST_P(Framing, FastPayloadIsCopiedTwiceAndNeverReassembled) {
  const Result r = run(1, options(32), "");
  EXPECT_EQ(r.bad, "");
  EXPECT_EQ(r.right.iwarp.bytes_slow, 0u);
  EXPECT_GT(r.right.verbs.payload_placed, 100000u);
  EXPECT_LT(static_cast<double>(r.right.iwarp.bytes_copied),
            2.1 * static_cast<double>(r.right.verbs.payload_placed));
}

}  // namespace
}  // namespace urnic::test
