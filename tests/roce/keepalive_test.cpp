// Idle RoCE connections whose peer is alive or gone: two simulated engines.
#include <gtest/gtest.h>

#include "roce/context.h"
#include "tests/roce/connect_ends.h"

namespace urnic::test {
namespace {

using verbs::QpState;
using verbs::Status;
using verbs::WrOp;

class RoceKeepalive : public RoceConnectEnds {
 protected:
  void connected(Duration left_idle = Duration::s(3), Duration right_idle = Duration::s(3)) {
    sim::PairOptions o = both();
    o.left.roce.keepalive = left_idle;
    o.right.roce.keepalive = right_idle;
    open(o);
    ASSERT_TRUE(ask().ok());
    ASSERT_TRUE(asked());
    ASSERT_TRUE(answer().ok());
    ASSERT_TRUE(established());
  }
  void cut() {
    pair->set_faults_left("loss=1");
    pair->set_faults_right("loss=1");
  }
  void expect_both_up() {
    EXPECT_EQ(left->state, QpState::Rts);
    EXPECT_EQ(right->state, QpState::Rts);
    EXPECT_EQ(pair->left().events.size(), 1u);
    EXPECT_EQ(pair->right().events.size(), 1u);
  }
};

// proves: E-43
TEST_F(RoceKeepalive, AReceivingEndDetectsAVanishedPeer) {
  connected();
  rooms(4096);
  receive(*right, 7, 0, 100);
  cut();
  pair->run_for(Duration::s(5));
  EXPECT_EQ(right->state, QpState::Rts) << "three questions take their time";
  ASSERT_TRUE(until(pair->right(), Kind::Failed, Duration::s(5)));
  EXPECT_EQ(find(pair->right(), Kind::Failed)->code, Errc::timed_out);
  EXPECT_EQ(right->state, QpState::Error);
  pair->right().drain_completions();
  ASSERT_EQ(pair->right().receive_done.size(), 1u);
  EXPECT_EQ(pair->right().receive_done[0].completion.status, Status::Flushed);
  ASSERT_TRUE(until(pair->left(), Kind::Failed));
  expect_nothing_left();
  for (sim::Node* n : {&pair->left(), &pair->right()}) {
    EXPECT_EQ(news(*n), 2u) << "established, failed";
  }
}

TEST_F(RoceKeepalive, SwitchedOffAVanishedPeerIsNotDetected) {
  connected(Duration::zero(), Duration::zero());
  cut();
  pair->run_for(Duration::s(1000));
  expect_both_up();
}

// proves: IB-42, E-43
TEST_F(RoceKeepalive, ALivePeerIsKeptAndProbesMakeNoHalves) {
  connected();
  pair->run_for(Duration::s(100));
  expect_both_up();
  for (verbs::QueuePair* qp : {left, right}) {
    EXPECT_TRUE(roce::context_of(*qp).requester.awaited());
    EXPECT_EQ(roce::context_of(*qp).responder.rc(), nullptr);
  }
  expect_carries();
  pair->run_for(Duration::s(100));
  expect_both_up();
}

// One end probes, the other one only responds: with halves, and without.
// proves: E-43
TEST_F(RoceKeepalive, AnEndWithoutKeepaliveAnswersProbes) {
  connected(Duration::s(3), Duration::zero());
  pair->run_for(Duration::s(100));
  expect_both_up();
  expect_carries();
  ASSERT_NE(roce::context_of(*right).responder.rc(), nullptr) << "it has taken nothing";
  const std::uint64_t asked = roce::context_of(*right).responder.rc()->counters().duplicates;
  pair->run_for(Duration::s(100));
  expect_both_up();
  EXPECT_GT(roce::context_of(*right).responder.rc()->counters().duplicates, asked + 10);
}

TEST_F(RoceKeepalive, AProcessStoppedForLongDoesNotGiveItsPeerUp) {
  connected();
  for (int n = 0; n < 20; ++n) {
    pair->run_for(Duration::ms(2300));
    pair->leap(pair->right(), Duration::s(3600));
  }
  pair->run_for(Duration::s(20));
  expect_both_up();
  expect_carries();
}

// proves: E-43
TEST_F(RoceKeepalive, OutstandingRequestsAreLeftToTheTransportTimer) {
  connected();
  rooms(4096);
  cut();
  post(*left, WrOp::Write, 1, 10, 0);
  ASSERT_TRUE(run(1, 0, Duration::s(200)));
  EXPECT_EQ(pair->left().send_done[0].completion.status, Status::RetryExceeded);
  ASSERT_EQ(told(pair->left(), Kind::Failed), 1u);
  EXPECT_EQ(find(pair->left(), Kind::Failed)->code, Errc::reset) << "as its completion says";
}

// The other end sends all the time: this end sends the same packets as without keepalive.
// proves: E-43
TEST_F(RoceKeepalive, APeerThatSendsAllTheTimeIsNotProbed) {
  std::uint64_t said[2] = {};
  for (const bool looks : {false, true}) {
    connected(Duration::zero(), looks ? Duration::s(3) : Duration::zero());
    rooms(4096);
    for (std::uint64_t n = 1; n <= 20; ++n) {
      post(*left, WrOp::Write, n, 10, 0);
      ASSERT_TRUE(run(n));
      pair->run_for(Duration::s(1));
    }
    said[looks] = pair->right().port().stats().tx_frames;
  }
  EXPECT_EQ(said[1], said[0]);
}

TEST_F(RoceKeepalive, AnEndedConnectionSendsNoProbes) {
  connected();
  connections(pair->left()).disconnect(*left, pair->now());
  ASSERT_TRUE(until(pair->right(), Kind::Disconnected));
  expect_nothing_left();
  EXPECT_TRUE(roce::context_of(*left).alive.due().is_never());
  EXPECT_TRUE(roce::context_of(*right).alive.due().is_never());
}

}  // namespace
}  // namespace urnic::test
