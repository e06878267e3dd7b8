// A completion queue that overruns ends all queue pairs that complete on it, with the cause, once
// (E-47).
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "sim/pair.h"

namespace urnic::test {
namespace {

using Kind = engine::CmEvent::Kind;

struct Overrun : ::testing::Test {
  static sim::PairOptions small() {
    sim::PairOptions o;
    o.completions = 4;
    return o;
  }
  void SetUp() override {
    busy = node().make_qp();
    ASSERT_TRUE(pair.connect(*busy, *pair.right().make_qp()));
    idle = node().make_qp();
    ended = node().make_qp();
    ended->state.modify(verbs::QpState::Error);
    key = node().register_memory(memory.data(), memory.size(), verbs::kLocalWrite);
    node().events.clear();
  }
  sim::Node& node() { return pair.left(); }
  // Posts more than there is room for; each completes as soon as it has been sent.
  void post_too_many() {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), 16, key};
    for (int i = 0; i < 6; ++i) {
      verbs::SendWr wr;
      wr.flags = verbs::kSignaled | verbs::kInline;
      wr.sges = {&sge, 1};
      ASSERT_EQ(busy->sq.post(wr), verbs::Post::Ok);
    }
    node().engine().work_posted(*busy, verbs::kPostedSends, pair.now());
  }
  sim::Pair pair{small()};
  verbs::QueuePair *busy = nullptr, *idle = nullptr, *ended = nullptr;
  std::array<std::uint8_t, 64> memory{};
  std::uint32_t key = 0;
};

// The post itself reports the error: perhaps nothing else ever happens.
// proves: E-47
TEST_F(Overrun, CausedByAPostEndsTheQueuePairWithinThePost) {
  post_too_many();
  EXPECT_EQ(busy->state, verbs::QpState::Error);
  EXPECT_EQ(idle->state, verbs::QpState::Error);
}

// proves: E-47
TEST_F(Overrun, AQueuePairThatHasEndedIsNotReportedAgain) {
  post_too_many();
  pair.run_for(Duration::ms(1));
  int told = 0;
  for (const engine::CmEvent& e : node().events) {
    EXPECT_EQ(e.kind, Kind::Failed);
    EXPECT_NE(e.qp, ended);
    told += e.qp == busy || e.qp == idle;
  }
  EXPECT_EQ(told, 2);
}

// Receives posted to an unconnected queue pair are flushed, if their queue has room.
// proves: E-47
TEST_F(Overrun, ReceivesOfAnIdleQueuePairAreFlushed) {
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), 64, key};
  for (std::uint64_t id : {1, 2}) {
    ASSERT_TRUE(node().post_receive(*idle, {id, {&sge, 1}}, pair.now()));
  }
  post_too_many();
  node().drain_completions();
  ASSERT_EQ(node().receive_done.size(), 2u);
  for (const verbs::Cqe& c : node().receive_done) {
    EXPECT_EQ(c.qp_number, idle->number());
    EXPECT_EQ(c.completion.status, verbs::Status::Flushed);
  }
}

}  // namespace
}  // namespace urnic::test
