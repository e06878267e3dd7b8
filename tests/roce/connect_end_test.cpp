// The ends of RoCE connections, lost and repeated messages, and the numbers that rest after them,
// in two simulated engines.
#include <gtest/gtest.h>

#include "tests/roce/connect_ends.h"
#include "tests/support/allocator.h"

namespace urnic::test {
namespace {

using verbs::QpState;
using verbs::Status;
using verbs::WrOp;

class RoceDisconnect : public RoceConnectEnds {
 protected:
  sim::Node& node(int which) { return which == 0 ? pair->left() : pair->right(); }
  verbs::QueuePair& qp(int which) { return which == 0 ? *left : *right; }
  void disconnect(int which) { connections(node(which)).disconnect(qp(which), pair->now()); }
  bool both_told(Kind kind) { return until(pair->left(), kind) && until(pair->right(), kind); }
};
class RoceDisconnectBoth : public RoceDisconnect, public ::testing::WithParamInterface<int> {};

// ---- orderly

// proves: IB-138
TEST_P(RoceDisconnectBoth, EitherEndMayDisconnectAndEachEndGetsOneEvent) {
  connected();
  rooms(4096);
  receive(*right, 7, 0, 100);
  disconnect(GetParam());
  EXPECT_EQ(qp(GetParam()).state, QpState::Error) << "at once";
  EXPECT_EQ(told(node(GetParam()), Kind::Disconnected), 0u) << "when the peer has answered";
  ASSERT_TRUE(both_told(Kind::Disconnected));
  EXPECT_EQ(left->state, QpState::Error);
  EXPECT_EQ(right->state, QpState::Error);
  pair->right().drain_completions();
  ASSERT_EQ(pair->right().receive_done.size(), 1u);
  EXPECT_EQ(pair->right().receive_done[0].completion.status, Status::Flushed);
  disconnect(GetParam());  // a second call has no effect
  expect_nothing_left();
  for (sim::Node* n : {&pair->left(), &pair->right()}) {
    EXPECT_EQ(news(*n), 2u) << "established, disconnected";
  }
}
INSTANTIATE_TEST_SUITE_P(Ends, RoceDisconnectBoth, ::testing::Values(0, 1),
                         [](const auto& i) { return i.param == 0 ? "Active" : "Passive"; });

// proves: IB-138
TEST_F(RoceDisconnect, BothEndsDisconnectingAtOnceEachGetOneEvent) {
  connected();
  disconnect(0);
  disconnect(1);
  ASSERT_TRUE(both_told(Kind::Disconnected));
  expect_nothing_left();
  EXPECT_EQ(told(pair->left(), Kind::Disconnected), 1u);
  EXPECT_EQ(told(pair->right(), Kind::Disconnected), 1u);
}

// proves: IB-129
TEST_F(RoceDisconnect, TheEndOfTimeWaitIsReportedForAConnection) {
  connected();
  disconnect(0);
  ASSERT_TRUE(both_told(Kind::Disconnected));
  pair->run_for(Duration::ms(100));
  EXPECT_EQ(told(pair->left(), Kind::TimeWaitOver), 0u);
  pair->run_for(Duration::ms(3000));
  EXPECT_EQ(told(pair->left(), Kind::TimeWaitOver), 1u);
  EXPECT_EQ(told(pair->right(), Kind::TimeWaitOver), 1u);
  EXPECT_EQ(pair->left().events.back().kind, Kind::TimeWaitOver);
}

// proves: IB-129
TEST_F(RoceDisconnect, TheEndOfTimeWaitIsNotReportedForARefusedConnection) {
  open();
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  connections(pair->right()).reject(pair->right().roce_requests.back().id, {}, pair->now());
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed));
  pair->run_for(Duration::s(5));
  EXPECT_EQ(told(pair->left(), Kind::TimeWaitOver), 0u);
}

// proves: IB-138
TEST_F(RoceDisconnect, TheDrepIsSentBeforeTheEndIsReported) {
  connected();
  rooms(4096);
  receive(*right, 7, 0, 100);
  pair->run_until([] { return false; }, Duration::ms(50));
  const auto frames = [&] { return pair->right().port().stats().tx_frames; };
  const std::uint64_t before = frames();
  std::uint64_t when_told = 0;
  right->receive_cq->arm(false);
  pair->right().on_sleeper = [&] { when_told = frames(); };  // on the receive that is flushed
  disconnect(0);
  ASSERT_TRUE(both_told(Kind::Disconnected));
  EXPECT_EQ(when_told, before + 1) << "the DREP";
}

// proves: IB-138
TEST_F(RoceDisconnect, DestroyingAQueuePairSendsADreq) {
  connected();
  pair->run_until([] { return false; }, Duration::ms(50));
  const auto frames = [&] { return pair->left().port().stats().tx_frames; };
  const std::uint64_t before = frames();
  left->control->destroy(left, pair->now());
  EXPECT_EQ(frames(), before + 1) << "the DREQ, without another turn of the engine";
  EXPECT_TRUE(until(pair->right(), Kind::Disconnected));
}

TEST_F(RoceDisconnect, ExecutedRequestsAreAnsweredBeforeTheEnd) {
  connected();
  rooms(4096);
  receive(*right, 7, 0, 100);
  post(*left, WrOp::Send, 1, 10, 0);
  ASSERT_TRUE(pair->run_until(
      [&] {
        pair->right().drain_completions();
        return !pair->right().receive_done.empty();
      },
      Duration::s(1)));
  disconnect(1);
  ASSERT_TRUE(both_told(Kind::Disconnected));
  ASSERT_TRUE(run(1));
  EXPECT_EQ(pair->left().send_done[0].completion.status, Status::Success);
}

TEST_F(RoceDisconnect, DisconnectBeforeEstablishmentFailsTheConnection) {
  open();
  ASSERT_TRUE(ask().ok());
  disconnect(0);
  ASSERT_EQ(pair->left().events.size(), 1u);
  EXPECT_EQ(pair->left().events[0].kind, Kind::ConnectFailed);
  EXPECT_EQ(pair->left().events[0].code, Errc::closed);
  EXPECT_EQ(left->state, QpState::Error);
  expect_nothing_left();
  EXPECT_EQ(pair->left().events.size(), 1u);
  EXPECT_TRUE(pair->right().events.empty());
}

TEST_F(RoceDisconnect, AbortEndsTheConnectionAtOnceAndThePeerIsNotified) {
  connected();
  connections(pair->left()).abort(*left, pair->now());
  ASSERT_EQ(told(pair->left(), Kind::Failed), 1u);
  EXPECT_EQ(find(pair->left(), Kind::Failed)->code, Errc::closed);
  EXPECT_EQ(left->state, QpState::Error);
  ASSERT_TRUE(until(pair->right(), Kind::Disconnected));
  connections(pair->left()).abort(*left, pair->now());
  expect_nothing_left();
  EXPECT_EQ(news(pair->left()), 2u);
  EXPECT_EQ(news(pair->right()), 2u);
}

TEST_F(RoceDisconnect, AQueuePairConnectedByHandHasNoConnectionToEnd) {
  up();
  for (int which : {0, 1}) {
    disconnect(which);
    connections(node(which)).abort(qp(which), pair->now());
  }
  pair->run_for(Duration::s(1));
  EXPECT_EQ(left->state, QpState::Rts);
  EXPECT_TRUE(pair->left().events.empty());
}

// ---- lost and duplicate frames

// Each frame of either end is lost once: the connection is still made, used and ended.
// proves: IB-139, IB-138
TEST_F(RoceDisconnect, AnySingleLostFrameStillMakesUsesAndEndsTheConnectionOnce) {
  for (int which : {0, 1}) {
    for (int n = 1; n <= 9; ++n) {
      SCOPED_TRACE("frame " + std::to_string(n) + " of end " + std::to_string(which));
      sim::PairOptions o = both();
      (which == 0 ? o.faults_left : o.faults_right) = "at=loss:" + std::to_string(n);
      open(o);
      ASSERT_TRUE(ask().ok());
      ASSERT_TRUE(asked());
      ASSERT_TRUE(answer().ok());
      ASSERT_TRUE(established(Duration::s(10)));
      expect_carries();
      EXPECT_EQ(
          (which == 0 ? pair->injected_left() : pair->injected_right()).of(fault::FaultKind::Loss),
          1u);
      disconnect(n % 2);
      ASSERT_TRUE(both_told(Kind::Disconnected));
      expect_nothing_left();
      EXPECT_EQ(news(pair->left()), 2u);
      EXPECT_EQ(news(pair->right()), 2u);
      EXPECT_EQ(pair->right().roce_requests.size(), 1u);
      ours.reset();
      theirs.reset();
      inbox.reset();
    }
  }
}

// proves: IB-139
TEST_F(RoceDisconnect, DuplicatingEveryFrameChangesNothing) {
  sim::PairOptions o = both();
  o.faults_left = o.faults_right = "dup=1";
  open(o);
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  pair->run_for(Duration::ms(1));
  EXPECT_EQ(pair->right().roce_requests.size(), 1u);
  ASSERT_TRUE(answer().ok());
  ASSERT_TRUE(established());
  expect_carries();
  disconnect(0);
  ASSERT_TRUE(both_told(Kind::Disconnected));
  expect_nothing_left();
  EXPECT_EQ(news(pair->left()), 2u);
  EXPECT_EQ(news(pair->right()), 2u);
}

// A program may exit after the call. The DREQ that waits for its answer counts as leaving.
TEST_F(RoceDisconnect, MessagesOfACallAreSentWithinTheCall) {
  open();
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  ASSERT_TRUE(answer().ok());
  EXPECT_EQ(connections(pair->right()).leaving(true), 0u) << "the REP";
  ASSERT_TRUE(established());
  disconnect(0);
  EXPECT_EQ(connections(pair->left()).leaving(true), 1u) << "the DREQ";
}

TEST_F(RoceDisconnect, ARejectionIsSentWithinTheCall) {
  open();
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  connections(pair->right()).reject(pair->right().roce_requests.back().id, {}, pair->now());
  EXPECT_EQ(connections(pair->right()).leaving(true), 0u);
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed));
  EXPECT_EQ(find(pair->left(), Kind::ConnectFailed)->roce_peer.reject_reason, 28);
}

// The program exits with a request that it has not answered.
TEST_F(RoceDisconnect, ProgramExitRefusesUnansweredRequests) {
  open();
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  connections(pair->right()).refuse_requests(pair->now());
  EXPECT_EQ(connections(pair->right()).leaving(true), 0u);
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed, Duration::ms(10)));
  EXPECT_EQ(find(pair->left(), Kind::ConnectFailed)->roce_peer.reject_reason, 28);
}

// The RTU is lost, and the active end sends at once.
// proves: IB-139, IB-120
TEST_F(RoceDisconnect, TheFirstRequestEstablishesLikeTheRtu) {
  open();
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  ASSERT_TRUE(answer().ok());
  pair->set_faults_left("at=loss:2");  // ARP, then the RTU
  rooms(4096);
  receive(*right, 7, 0, 100);
  ASSERT_TRUE(until(pair->left(), Kind::Established));
  EXPECT_EQ(told(pair->right(), Kind::Established), 0u);
  post(*left, WrOp::Send, 1, 10, 0);
  ASSERT_TRUE(until(pair->right(), Kind::Established, Duration::ms(10)));
  EXPECT_EQ(right->state, QpState::Rts);
  ASSERT_TRUE(run(1, 1));
  EXPECT_EQ(told(pair->right(), Kind::EarlyData), 0u) << "established says it";
  pair->run_for(Duration::s(10));
  EXPECT_EQ(told(pair->right(), Kind::Established), 1u);
}

// ---- failures

// proves: E-50
TEST_F(RoceDisconnect, AVanishedPeerIsDetectedByWorkAndNothingRemains) {
  connected();
  rooms(4096);
  pair->set_faults_right("loss=1");
  pair->set_faults_left("loss=1");
  post(*left, WrOp::Write, 1, 10, 0);
  ASSERT_TRUE(run(1, 0, Duration::s(200)));
  EXPECT_EQ(pair->left().send_done[0].completion.status, Status::RetryExceeded);
  ASSERT_EQ(told(pair->left(), Kind::Failed), 1u);
  EXPECT_EQ(find(pair->left(), Kind::Failed)->code, Errc::reset);
  pair->run_for(Duration::s(300));
  EXPECT_EQ(news(pair->left()), 2u) << "established, failed, and no second end";
  EXPECT_EQ(tables(pair->left()).cm_connections, 0u);
}

// A refused request of the peer ends the connection; the peer learns of it by the NAK and the DREQ.
// proves: E-50
TEST_F(RoceDisconnect, AQueuePairThatFailsEndsItsConnectionAtBothEnds) {
  connected();
  rooms(4096);
  theirs->key ^= 0x100;  // an unknown key
  post(*left, WrOp::Write, 1, 10, 0);
  ASSERT_TRUE(run(1));
  EXPECT_EQ(pair->left().send_done[0].completion.status, Status::RemoteAccess);
  pair->run_for(Duration::s(1));
  EXPECT_EQ(left->state, QpState::Error);
  EXPECT_EQ(right->state, QpState::Error);
  EXPECT_EQ(told(pair->left(), Kind::Failed), 1u);
  EXPECT_EQ(pair->left().events.size(), 2u) << "established, failed";
  EXPECT_EQ(find(pair->right(), Kind::Failed)->code, Errc::protocol);
  EXPECT_EQ(told(pair->right(), Kind::AccessError), 1u);
  EXPECT_EQ(pair->right().events.size(), 3u) << "established, failed and why";
  expect_nothing_left();
}

TEST_F(RoceDisconnect, AFailureBeforeEstablishmentIsAFailedConnect) {
  open();
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  ASSERT_TRUE(answer().ok());
  pair->set_faults_left("at=loss:2");
  ASSERT_TRUE(until(pair->left(), Kind::Established));
  rooms(4096);
  theirs->key ^= 0x100;
  post(*left, WrOp::Write, 1, 10, 0);
  ASSERT_TRUE(until(pair->right(), Kind::ConnectFailed));
  const verbs::CmEvent& failed = *find(pair->right(), Kind::ConnectFailed);
  EXPECT_EQ(failed.code, Errc::protocol);
  EXPECT_EQ(failed.message, "the peer requested memory that it has no access rights to");
  expect_nothing_left();
  EXPECT_EQ(news(pair->right()), 1u);
}

// proves: E-43
TEST_F(RoceDisconnect, GivingUpTheLinkFailsPendingConnections) {
  open();
  ASSERT_TRUE(ask().ok());
  pair->left().engine().roce_control().give_up_link("the link is gone", pair->now());
  EXPECT_EQ(pair->left().engine().next_deadline(), Instant()) << "to be acted on now";
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed, Duration::ms(1)));
  EXPECT_EQ(pair->left().events[0].code, Errc::unreachable);
  EXPECT_EQ(news(pair->left()), 1u) << "told once";
  EXPECT_EQ(left->state, QpState::Error);
  expect_nothing_left();
}

// Its queue pair is gone, and its DREQ was lost.
TEST_F(RoceDisconnect, APeerThatHasForgottenTheConnectionAnswersTheDreq) {
  connected();
  pair->set_faults_right("at=loss:1");  // its DREQ
  right->control->destroy(right, pair->now());
  pair->run_for(Duration::us(50));
  disconnect(0);
  ASSERT_TRUE(until(pair->left(), Kind::Disconnected));
  expect_nothing_left();
}

// ---- numbers

// proves: IB-129
TEST_F(RoceDisconnect, TheNumberOfADestroyedQueuePairRestsAndThePeerIsNotified) {
  connected();
  const std::uint32_t number = left->number();
  engine::Engine& e = pair->left().engine();
  left->control->destroy(left, pair->now());
  ASSERT_TRUE(until(pair->right(), Kind::Disconnected));
  EXPECT_EQ(right->state, QpState::Error);
  EXPECT_EQ(told(pair->left(), Kind::Disconnected), 0u) << "nobody is there to hear it";
  pair->run_for(Duration::ms(1));
  EXPECT_EQ(tables(pair->left()).numbers_in_time_wait, 1u);
  EXPECT_TRUE(e.queue_pairs().has(number));
  ddp::StreamConfig config;
  config.id = number;
  config.pd = pair->left().pd;
  verbs::CompletionQueue cq(8);
  EXPECT_EQ(e.iwarp_control().create_qp(config, &cq, &cq), nullptr) << "nor may iWARP have it";
  EngineStats stats;
  e.fill_stats(&stats);
  EXPECT_EQ(stats.roce.numbers_in_time_wait, 1u);
  EXPECT_GE(stats.roce.cm_sent, 3u) << "REQ, RTU, DREQ";
  EXPECT_EQ(stats.roce.cm_received, 2u) << "REP, DREP";
  pair->run_for(Duration::ms(2200));
  EXPECT_TRUE(e.queue_pairs().has(number)) << "twice the way and the delay: 2.28 s";
  pair->run_for(Duration::ms(200));
  EXPECT_FALSE(e.queue_pairs().has(number));
  EXPECT_EQ(tables(pair->left()).numbers_in_time_wait, 0u);
  expect_nothing_left();
}

// proves: IB-129
TEST_F(RoceDisconnect, AfterAResetTheQueuePairConnectsAgainWhenTimeWaitIsOver) {
  connected();
  for (int which : {0, 1}) {
    roce::QpChange reset;
    ASSERT_EQ(node(which).engine().roce_control().move(qp(which), reset, pair->now()),
              roce::Modified::Ok);
    node(which).events.clear();
  }
  pair->right().roce_requests.clear();
  pair->run_for(Duration::ms(100));
  EXPECT_EQ(ask().error().code, Errc::wrong_state);
  EXPECT_TRUE(pair->left().events.empty()) << "nobody asked to hear of it";
  pair->run_for(Duration::ms(2500));
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  ASSERT_TRUE(answer().ok());
  ASSERT_TRUE(established());
  expect_carries();
}

// ---- out of memory

// Any one allocation of making a connection fails: there is either a connection or a clear failure,
// and nothing remains.
TEST_F(RoceDisconnect, WithoutMemoryThereIsAConnectionOrAClearFailure) {
  std::uint64_t made = 0, failed = 0;
  for (std::uint64_t n = 0;; ++n) {
    SCOPED_TRACE(n);
    open();
    pair->left().events.clear();
    bool asked_for = false, no_more = false;
    {
      testing::NoMemory none(n);
      const auto quietly = [&](auto&& f) {
        try {
          f();
        } catch (const std::bad_alloc&) {
        }
      };
      quietly([&] { asked_for = ask().ok(); });
      for (int i = 0; i < 200; ++i) {
        quietly([&] { pair->run_for(Duration::us(50)); });
        if (pair->right().roce_requests.size() == 1 && right->state == QpState::Reset) {
          quietly([&] { static_cast<void>(answer()); });
        }
      }
      no_more = none.failed() == 0;
    }
    if (right->state <= QpState::Init && !pair->right().roce_requests.empty()) {
      connections(pair->right()).reject(pair->right().roce_requests.front().id, {}, pair->now());
    }
    pair->run_for(Duration::s(20));
    const auto ends = [&](sim::Node& e) {
      return told(e, Kind::Established) + told(e, Kind::ConnectFailed);
    };
    if (asked_for) {
      EXPECT_GE(ends(pair->left()), 1u);
    }
    const bool up = left->state == QpState::Rts;
    (up ? made : failed) += 1;
    if (up) {
      connections(pair->left()).disconnect(*left, pair->now());
      ASSERT_TRUE(until(pair->left(), Kind::Disconnected));
    }
    expect_nothing_left();
    if (no_more) break;
  }
  EXPECT_GT(made, 0u);
}

// The port has no listener, and there is no memory at the moment of the report.
// proves: E-50
TEST_F(RoceDisconnect, AnEventWithoutMemoryIsReportedLater) {
  std::uint64_t late = 0;
  for (std::uint64_t n = 0;; ++n) {
    SCOPED_TRACE(n);
    open();
    connections(pair->right()).listeners().close(listener);
    ASSERT_TRUE(ask().ok());
    bool no_more = false;
    {
      testing::NoMemory none(n);
      for (int i = 0; i < 20; ++i) {
        try {
          pair->run_for(Duration::us(50));
        } catch (const std::bad_alloc&) {
          // an unfinished step is lost as on the wire
        }
      }
      no_more = none.failed() == 0;
    }
    late += pair->left().events.empty();
    pair->run_for(Duration::s(9));
    ASSERT_EQ(pair->left().events.size(), 1u);
    EXPECT_EQ(pair->left().events[0].kind, Kind::ConnectFailed);
    EXPECT_EQ(pair->left().events[0].code, Errc::refused);
    EXPECT_EQ(left->state, QpState::Error);
    expect_nothing_left();
    if (no_more) break;
  }
  EXPECT_GE(late, 2u) << "of telling it, at least";
}

}  // namespace
}  // namespace urnic::test
