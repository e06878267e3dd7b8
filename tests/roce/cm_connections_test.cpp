// RoCE connections whose programs move the queue pairs themselves: two simulated engines.
#include "roce/cm_connections.h"

#include <gtest/gtest.h>

#include "ib_cm/consent.h"
#include "tests/roce/connect_ends.h"
#include "tests/support/allocator.h"

namespace urnic::test {
namespace {

using verbs::QpState;

constexpr std::uint32_t kMine = 0xabcdef, kTheirs = 0x123456;  // no queue pair has them here

class RoceAgreement : public RoceConnectEnds {
 protected:
  using Id = roce::CmConnections::Id;

  static roce::CmConnections& of(sim::Node& n) { return connections(n).cm_connections(); }
  Result<Id> ask_for(std::uint32_t number, const roce::ConnectParams& p = wish(),
                     const std::string& to = "10.0.0.2:7000") {
    auto id =
        of(pair->left())
            .connect(&pair->left(), *SocketAddress::parse(to), {number, false}, p, pair->now());
    if (id) mine = *id;
    return id;
  }
  Result<Id> answer_with(std::uint32_t number, const roce::ConnectParams& p = wish()) {
    auto id = of(pair->right())
                  .accept(&pair->right(), pair->right().roce_requests.back().id, {number, false}, p,
                          pair->now());
    if (id) theirs = *id;
    return id;
  }
  static std::size_t heard(const sim::Node& n, Kind kind) {
    return static_cast<std::size_t>(
        std::count_if(n.cm_connections.begin(), n.cm_connections.end(),
                      [&](const auto& e) { return e.second.kind == kind; }));
  }
  bool hears(const sim::Node& n, Kind kind, Duration limit = Duration::s(60)) {
    return pair->run_until([&] { return heard(n, kind) != 0; }, limit);
  }
  void answered() {
    open();
    ASSERT_TRUE(ask_for(kMine).ok());
    ASSERT_TRUE(asked());
    ASSERT_TRUE(answer_with(kTheirs).ok());
    ASSERT_TRUE(hears(pair->left(), Kind::Answered));
  }
  void agreed() {
    answered();
    ASSERT_TRUE(of(pair->left()).confirm(mine, pair->now()).ok());
    ASSERT_TRUE(hears(pair->right(), Kind::Established));
  }
  void forget_both() {
    of(pair->left()).forget(mine, pair->now());
    of(pair->right()).forget(theirs, pair->now());
  }
  void expect_forgotten() {
    expect_nothing_left();
    EXPECT_EQ(of(pair->left()).size(), 0u);
    EXPECT_EQ(of(pair->right()).size(), 0u);
  }

  Id mine = 0, theirs = 0;
};

TEST_F(RoceAgreement, NumbersAreExchangedAndNoQueuePairMoves) {
  open();
  roce::ConnectParams p = wish(3, 5);
  const std::string hello = "hello", welcome = "welcome";
  p.private_data = view(hello);
  ASSERT_TRUE(ask_for(kMine, p).ok());
  ASSERT_TRUE(asked());
  const verbs::ConnectionRequest& r = pair->right().roce_requests.front();
  EXPECT_EQ(r.roce_peer.qp_number, kMine);
  EXPECT_EQ(std::string(r.private_data.begin(), r.private_data.end()).substr(0, 6), hello + '\0');
  p = wish(2, 9);
  p.private_data = view(welcome);
  ASSERT_TRUE(answer_with(kTheirs, p).ok());
  ASSERT_TRUE(hears(pair->left(), Kind::Answered));
  const engine::CmEvent& e = pair->left().cm_connections.front().second;
  EXPECT_EQ(e.roce_peer.qp_number, kTheirs);
  EXPECT_EQ(e.roce_peer.ird, 3) << "what the peer has outstanding";
  EXPECT_EQ(e.roce_peer.ord, 2) << "what the peer serves";
  EXPECT_EQ(e.private_data.substr(0, 7), welcome);
  pair->run_for(Duration::s(1));
  EXPECT_EQ(heard(pair->right(), Kind::Established), 0u) << "before it is confirmed";
  ASSERT_TRUE(of(pair->left()).confirm(mine, pair->now()).ok());
  ASSERT_TRUE(hears(pair->right(), Kind::Established));
  EXPECT_FALSE(of(pair->left()).confirm(mine, pair->now()).ok()) << "once";
  EXPECT_EQ(left->state, QpState::Reset);
  EXPECT_EQ(right->state, QpState::Reset);
}

// The terms of both ends match: queue pairs moved by them work.
TEST_F(RoceAgreement, QueuePairsMovedByItsTermsCarryWork) {
  open();
  ASSERT_TRUE(ask_for(left->number()).ok());
  ASSERT_TRUE(asked());
  const auto moves = [&](sim::Node& n, verbs::QueuePair& qp, const roce::ConnectionTerms& t) {
    for (const roce::QpChange& c : {roce::to_init(t.rtr.responder_depth), t.rtr, t.rts}) {
      ASSERT_EQ(n.engine().roce_control().move(qp, c, pair->now()), roce::Modified::Ok);
    }
  };
  const auto moves_by = [&](sim::Node& n, verbs::QueuePair& qp, const QpAttributes& all) {
    QpAttributes init, rtr = all, rts;
    init.access = std::exchange(rtr.access, {});
    rts.sq_psn = std::exchange(rtr.sq_psn, {});
    rts.ack_timeout = std::exchange(rtr.ack_timeout, {});
    rts.retry_count = std::exchange(rtr.retry_count, {});
    rts.rnr_retry = std::exchange(rtr.rnr_retry, {});
    rts.initiator_depth = std::exchange(rtr.initiator_depth, {});
    roce::ControlPath& control = n.engine().roce_control();
    ASSERT_TRUE(control.modify(qp, QpState::Init, init, pair->now()).ok());
    ASSERT_TRUE(control.modify(qp, QpState::Rtr, rtr, pair->now()).ok());
    ASSERT_TRUE(control.modify(qp, QpState::Rts, rts, pair->now()).ok());
  };
  // As a program does it: before it accepts.
  const QpAttributes offered = pair->right().roce_requests.front().attributes;
  roce::ConnectParams p = wish();
  p.psn = offered.rq_psn;
  moves_by(pair->right(), *right, offered);
  ASSERT_TRUE(answer_with(right->number(), p).ok());
  ASSERT_TRUE(hears(pair->left(), Kind::Answered));
  bool known = false;
  const auto terms = of(pair->left()).terms(mine, &known);
  ASSERT_TRUE(terms && known);
  EXPECT_EQ(terms->rtr.dest_qp, right->number());
  moves(pair->left(), *left, *terms);
  ASSERT_TRUE(of(pair->left()).confirm(mine, pair->now()).ok());
  ASSERT_TRUE(hears(pair->right(), Kind::Established));
  expect_carries();
}

// The end is reported once, and queue pairs with that number do not change.
TEST_F(RoceAgreement, EitherEndMayDisconnect) {
  for (const bool by_left : {true, false}) {
    agreed();
    sim::Node& who = by_left ? pair->left() : pair->right();
    of(who).disconnect(by_left ? mine : theirs, pair->now());
    ASSERT_TRUE(hears(pair->left(), Kind::Disconnected));
    ASSERT_TRUE(hears(pair->right(), Kind::Disconnected));
    bool known = false;
    EXPECT_FALSE(of(who).terms(by_left ? mine : theirs, &known));
    pair->run_for(Duration::s(300));
    for (sim::Node* n : {&pair->left(), &pair->right()}) {
      EXPECT_EQ(heard(*n, Kind::Disconnected), 1u);
      EXPECT_EQ(heard(*n, Kind::TimeWaitOver), 1u);
    }
    expect_forgotten();
  }
}

TEST_F(RoceAgreement, AForgottenConnectionEndsForThePeer) {
  agreed();
  of(pair->left()).forget(mine, pair->now());
  ASSERT_TRUE(hears(pair->right(), Kind::Disconnected));
  EXPECT_EQ(heard(pair->left(), Kind::Disconnected), 0u);
  expect_forgotten();
}

TEST_F(RoceAgreement, ARepMayBeRejected) {
  answered();
  const std::string no = "no";
  ASSERT_TRUE(of(pair->left()).reject(mine, view(no), pair->now()).ok());
  ASSERT_TRUE(hears(pair->right(), Kind::ConnectFailed));
  const engine::CmEvent& e = pair->right().cm_connections.front().second;
  EXPECT_EQ(e.roce_peer.reject_reason, 28);
  EXPECT_EQ(e.private_data.substr(0, 2), no);
  EXPECT_FALSE(of(pair->left()).confirm(mine, pair->now()).ok());
  expect_forgotten();
}

TEST_F(RoceAgreement, ARefusalIsReported) {
  open();
  ASSERT_TRUE(ask_for(kMine).ok());
  ASSERT_TRUE(asked());
  connections(pair->right()).reject(pair->right().roce_requests.back().id, {}, pair->now());
  ASSERT_TRUE(hears(pair->left(), Kind::ConnectFailed));
  EXPECT_EQ(pair->left().cm_connections.front().second.roce_peer.reject_reason, 28);
  expect_forgotten();
}

TEST_F(RoceAgreement, AnUnreachablePeerIsReported) {
  open();
  ASSERT_TRUE(ask_for(kMine, wish(), "10.0.0.77:7000").ok());
  ASSERT_TRUE(hears(pair->left(), Kind::ConnectFailed));
  EXPECT_EQ(pair->left().cm_connections.front().second.code, Errc::timed_out);
  expect_forgotten();
}

// The RTU is lost or late, and the program has seen a request.
TEST_F(RoceAgreement, AFirstRequestEstablishesIt) {
  answered();
  ASSERT_TRUE(of(pair->right()).established(theirs, pair->now()).ok());
  ASSERT_TRUE(hears(pair->right(), Kind::Established));
  EXPECT_FALSE(of(pair->right()).established(theirs, pair->now()).ok());
  ASSERT_TRUE(of(pair->left()).confirm(mine, pair->now()).ok());
  pair->run_for(Duration::s(1));
  EXPECT_EQ(heard(pair->right(), Kind::Established), 1u);
}

// At one end connection management moves the queue pair, at the other end the program does.
TEST_F(RoceAgreement, ConnectsToAQueuePairMovedByConnectionManagement) {
  sim::PairOptions o = both();
  open(o);
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  ASSERT_TRUE(answer_with(kTheirs).ok());
  ASSERT_TRUE(until(pair->left(), Kind::Established));
  ASSERT_TRUE(hears(pair->right(), Kind::Established));
  EXPECT_EQ(left->state, QpState::Rts);
  EXPECT_EQ(roce::context_of(*left).attributes.dest_qp, kTheirs);
}

TEST_F(RoceAgreement, AnImpossibleQueuePairNumberIsRefused) {
  open();
  for (const std::uint32_t number : {0u, 1u, 0x1000000u}) {
    auto r = ask_for(number);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, Errc::invalid_argument);
  }
  expect_forgotten();
}

// Any one allocation fails: a connection that has begun ends and is reported, and nothing remains.
TEST_F(RoceAgreement, WithoutMemoryNothingRemains) {
  for (std::uint64_t n = 0;; ++n) {
    SCOPED_TRACE(n);
    open();
    mine = theirs = 0;
    const auto quietly = [](auto&& f) {
      try {
        f();
      } catch (const std::bad_alloc&) {
      }
    };
    const auto step = [&](Duration time) {
      quietly([&] { pair->run_for(time); });
      if (theirs == 0 && !pair->right().roce_requests.empty()) {
        quietly([&] { (void)answer_with(kTheirs); });
      }
      if (heard(pair->left(), Kind::Answered) != 0) {
        quietly([&] { (void)of(pair->left()).confirm(mine, pair->now()); });
      }
      if (heard(pair->right(), Kind::Established) != 0) {
        quietly([&] { of(pair->right()).disconnect(theirs, pair->now()); });
      }
    };
    const auto over = [&](sim::Node& who) {
      return of(who).size() == 0 || heard(who, Kind::ConnectFailed) != 0 ||
             heard(who, Kind::Disconnected) != 0;
    };
    const auto both_over = [&] { return over(pair->left()) && over(pair->right()); };
    bool no_more = false;
    {
      testing::NoMemory none(n);
      quietly([&] { (void)ask_for(kMine); });
      for (int i = 0; i < 200; ++i) step(Duration::us(50));
      no_more = none.failed() == 0;
    }
    for (int i = 0; i < 2000 && !both_over(); ++i) step(Duration::ms(50));
    EXPECT_TRUE(both_over());
    forget_both();
    expect_forgotten();
    if (no_more) break;
    ASSERT_LT(n, 2000u);
  }
}

TEST_F(RoceAgreement, ProgramExitEndsAllConnections) {
  agreed();
  of(pair->left()).end_all(pair->now());
  ASSERT_TRUE(hears(pair->right(), Kind::Disconnected));
  forget_both();
  expect_forgotten();
}

}  // namespace
}  // namespace urnic::test
