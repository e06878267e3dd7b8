// The gate of a listener: a peer that is refused finds a closed port, and no state is kept for it;
// over our own TCP and RoCE. (gate_real_test.cpp tests the kernel's TCP.)
#include <gtest/gtest.h>

#include <map>

#include "tests/roce/connect_ends.h"
#include "tests/support/hand_peer.h"

namespace urnic::test {
namespace {

using Kind = engine::CmEvent::Kind;

GateRules denies(const std::string& prefix) {
  GateRules rules;
  rules.access.deny(*IpPrefix::parse(prefix));
  return rules;
}

// The reason of the last refusal.
std::string last_reason(const sim::Node& n) {
  return n.turned_away.empty() ? "" : n.turned_away.back().why;
}

// iWARP connections over our own TCP from the left end to a listener of the right end. The left
// end's two addresses are two peers.
class OwnTcpGate : public ::testing::Test {
 protected:
  void open(const GateRules& rules) {
    sim::PairOptions o;
    o.right.gate = rules;
    o.left.mpa.revision = o.right.mpa.revision = 1;  // one TCP connection per attempt
    o.left.tcp.time_wait = o.right.tcp.time_wait = Duration::ms(1);
    pair = std::make_unique<sim::Pair>(o);
    listener = pair->right().engine().iwarp().listen(7000, 16).value();
  }
  verbs::QueuePair* ask(bool v6 = false) {
    engine::Engine& e = pair->left().engine();
    verbs::QueuePair* qp = pair->left().make_qp();
    const auto to = SocketAddress::parse(v6 ? "[fd00::2]:7000" : "10.0.0.2:7000");
    EXPECT_TRUE(e.iwarp().connect(*qp, *to, e.iwarp().default_params(), pair->now()).ok());
    return qp;
  }
  // The outcome, reported by either end; a request is accepted.
  std::optional<Kind> outcome(verbs::QueuePair* qp) {
    std::optional<Kind> kind;
    pair->run_until(
        [&] {
          accept();
          take_events();
          kind = outcomes.contains(qp) ? std::optional(outcomes[qp]) : std::nullopt;
          return kind.has_value();
        },
        Duration::s(30));
    return kind;
  }
  bool comes(bool v6 = false) { return outcome(last = ask(v6)) == Kind::Established; }
  // True if refused like by a port without a listener.
  bool is_refused(bool v6 = false) {
    codes.clear();
    return outcome(last = ask(v6)) == Kind::ConnectFailed && codes[last] == Errc::refused;
  }
  void accept() {
    auto& events = pair->right().events;
    for (; !events.empty(); events.pop_front()) {
      if (events.front().kind != Kind::ConnectRequest) continue;
      engine::Engine& e = pair->right().engine();
      EXPECT_TRUE(e.iwarp()
                      .accept(events.front().request.id, *pair->right().make_qp(),
                              e.iwarp().default_params(), pair->now())
                      .ok());
    }
  }
  void take_events() {
    auto& events = pair->left().events;
    for (; !events.empty(); events.pop_front()) {
      outcomes[events.front().qp] = events.front().kind;
      codes[events.front().qp] = events.front().code;
    }
  }
  void end(verbs::QueuePair* qp) {
    pair->left().engine().iwarp().abort(*qp, pair->now());
    pair->run_for(Duration::ms(50));
  }
  EngineStats stats() {
    EngineStats s;
    pair->right().engine().fill_stats(&s);
    return s;
  }
  std::size_t connections() { return pair->right().engine().tables().connections; }
  std::string why() { return last_reason(pair->right()); }

  std::unique_ptr<sim::Pair> pair;
  engine::Listener* listener = nullptr;
  verbs::QueuePair* last = nullptr;
  std::map<verbs::QueuePair*, Kind> outcomes;
  std::map<verbs::QueuePair*, Errc> codes;
};

// proves: AC-2
TEST_F(OwnTcpGate, ADeniedPeerFindsAClosedPortAndLeavesNoState) {
  open(denies("10.0.0.0/24"));
  EXPECT_TRUE(is_refused());
  EXPECT_EQ(stats().peers_denied, 1u);
  EXPECT_EQ(stats().peers_over_limit, 0u);
  EXPECT_EQ(stats().connections_opened, 0u) << "its SYN is answered, and that is all";
  EXPECT_EQ(stats().iwarp.rst_sent, 1u);
  EXPECT_EQ(connections(), 0u);
  ASSERT_EQ(pair->right().turned_away.size(), 1u);
  EXPECT_EQ(pair->right().turned_away[0].peer.ip, *IpAddress::parse("10.0.0.1"));
  EXPECT_EQ(pair->right().turned_away[0].local.port, 7000);
  EXPECT_EQ(pair->right().turned_away[0].why, "its address is denied");
  EXPECT_TRUE(comes(true)) << "the other address is not denied";
  EXPECT_EQ(stats().peers_denied, 1u);
}

// proves: AC-3
TEST_F(OwnTcpGate, ConnectionsAreLimitedAndOneMoreFitsWhenOneEnds) {
  open({.most = 2});
  ASSERT_TRUE(comes());
  verbs::QueuePair* first = last;
  ASSERT_TRUE(comes(true));
  EXPECT_TRUE(is_refused());
  EXPECT_TRUE(is_refused(true));
  EXPECT_EQ(stats().peers_over_limit, 2u);
  EXPECT_EQ(stats().peers_denied, 0u);
  EXPECT_EQ(connections(), 2u);
  EXPECT_EQ(why(), "listener_connections");
  end(first);
  EXPECT_TRUE(comes());
  EXPECT_EQ(stats().peers_over_limit, 2u);
}

// proves: AC-3
TEST_F(OwnTcpGate, TheLimitOfOneAddressDoesNotAffectAnother) {
  open({.most_of_peer = 1});
  ASSERT_TRUE(comes());
  verbs::QueuePair* first = last;
  EXPECT_TRUE(is_refused());
  EXPECT_TRUE(comes(true));
  EXPECT_EQ(why(), "peer_connections");
  end(first);
  EXPECT_TRUE(comes());
}

// proves: AC-3
TEST_F(OwnTcpGate, ConnectionsPerSecondAreLimited) {
  open({.rate = 2});
  EXPECT_TRUE(comes());
  EXPECT_TRUE(comes());
  EXPECT_TRUE(is_refused());
  EXPECT_EQ(why(), "accept_rate");
  pair->run_for(Duration::ms(500));
  EXPECT_TRUE(comes());
  EXPECT_TRUE(is_refused());
  EXPECT_EQ(stats().peers_over_limit, 2u);
}

// Both SYNs are answered before either handshake is complete: the first to complete gets the place.
// proves: AC-4
TEST_F(OwnTcpGate, TheCompletedHandshakeTakesThePlaceAndNotTheSyn) {
  open({.most = 1});
  verbs::QueuePair *a = ask(), *b = ask(true);
  const auto first = outcome(a), second = outcome(b);
  EXPECT_NE(first == Kind::Established, second == Kind::Established);
  EXPECT_EQ(stats().connections_opened, 2u) << "both were half open";
  EXPECT_EQ(stats().peers_over_limit, 1u);
  pair->run_for(Duration::s(20));
  EXPECT_EQ(connections(), 1u);
}

// The consumer rejects it: its place is free when it has ended.
// proves: AC-3
TEST_F(OwnTcpGate, ARejectedConnectionGivesItsPlaceBack) {
  open({.most = 1});
  ask();
  ASSERT_TRUE(pair->run_until([&] { return !pair->right().events.empty(); }, Duration::s(5)));
  pair->right().engine().iwarp().reject(pair->right().events.front().request.id, {}, pair->now());
  pair->right().events.clear();
  pair->run_for(Duration::s(20));
  EXPECT_TRUE(comes());
}

// proves: AC-4
TEST_F(OwnTcpGate, AConnectionIsNotAffectedByRefusedOnesAndOutlivesTheListener) {
  open({.most = 1});
  ASSERT_TRUE(comes());
  verbs::QueuePair* first = last;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(is_refused(i % 2 == 0));
  EXPECT_EQ(stats().peers_over_limit, 50u);
  pair->right().engine().iwarp().close_listener(listener, pair->now());
  pair->run_for(Duration::s(5));
  EXPECT_EQ(outcomes[first], Kind::Established);
  EXPECT_EQ(connections(), 1u);
  end(first);  // after its gate, which it kept
  EXPECT_EQ(connections(), 0u);
}

// SYNs with forged addresses take no place from the owners of these addresses.
// proves: AC-4
TEST(Gate, SynsFromForgedAddressesTakeNoPlace) {
  HandPeer p;
  p.options.gate = {{}, 1, 1, 1};
  p.flood = 50;
  ASSERT_TRUE(p.up()) << "behind a flood in its own name, of which none was meant";
  EXPECT_EQ(p.engine_stats().peers_over_limit, 0u);
  const auto got = p.forged_syn({IpAddress::v4(10, 0, 0, 1), 50000}, IpAddress::v4(10, 0, 0, 2));
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(got[0].seg.has(tcp::kRst));
  EXPECT_EQ(got[0].seg.ack, tcp::Seq(100));
  EXPECT_EQ(p.engine_stats().peers_over_limit, 1u);
  EXPECT_TRUE(p.fast());
  p.send(0, p.write(64, Bytes(300, 7)));
  EXPECT_EQ(p.at(64, 300), Bytes(300, 7));
}

// ---- RoCE

class RoceGate : public RoceConnectEnds {
 protected:
  std::string why() { return last_reason(pair->right()); }
  void open_with(const GateRules& rules) {
    sim::PairOptions o = both();
    o.right.gate = rules;
    open(o);
  }
  bool is_refused(bool over_v6 = false) {
    v6 = over_v6;
    pair->left().events.clear();
    left = pair->left().make_roce_qp();
    EXPECT_TRUE(ask().ok());
    if (!until(pair->left(), Kind::ConnectFailed, Duration::s(30))) return false;
    return find(pair->left(), Kind::ConnectFailed)->code == Errc::refused;
  }
  bool comes(bool over_v6 = false) {
    v6 = over_v6;
    pair->left().events.clear();
    pair->right().events.clear();
    pair->right().roce_requests.clear();
    left = pair->left().make_roce_qp();
    right = pair->right().make_roce_qp();
    return ask().ok() && asked(Duration::s(30)) && answer().ok() && established(Duration::s(30));
  }
  EngineStats stats() {
    EngineStats s;
    pair->right().engine().fill_stats(&s);
    return s;
  }
};

// proves: AC-2
TEST_F(RoceGate, ADeniedPeerFindsAClosedPortAndLeavesNoState) {
  open_with(denies("10.0.0.1"));
  EXPECT_TRUE(is_refused());
  EXPECT_EQ(stats().peers_denied, 1u);
  EXPECT_EQ(tables(pair->right()).cm_connections, 0u);
  ASSERT_EQ(pair->right().turned_away.size(), 1u);
  const sim::Node::TurnedAway& who = pair->right().turned_away[0];
  EXPECT_EQ(who.peer.ip, *IpAddress::parse("10.0.0.1"));
  EXPECT_EQ(who.local.port, 7000);
  EXPECT_NE(who.peer.port, 0);
  EXPECT_EQ(pair->right().turned_away[0].why, "its address is denied");
  EXPECT_TRUE(comes(true));
  EXPECT_EQ(stats().peers_denied, 1u);
}

// proves: AC-3
TEST_F(RoceGate, LimitsApplyAndAPlaceIsFreeWhenItsConnectionHasEnded) {
  open_with({.most = 2, .most_of_peer = 1});
  ASSERT_TRUE(comes());
  verbs::QueuePair* first = left;
  EXPECT_TRUE(is_refused());
  EXPECT_EQ(why(), "peer_connections");
  ASSERT_TRUE(comes(true));
  EXPECT_TRUE(is_refused());
  EXPECT_EQ(stats().peers_over_limit, 2u);
  connections(pair->left()).disconnect(*first, pair->now());
  pair->run_for(Duration::ms(50));
  EXPECT_TRUE(comes()) << "its number rests, its place does not";
}

// proves: AC-3
TEST_F(RoceGate, ARejectedConnectionGivesItsPlaceBackAndTheRateIsLimited) {
  open_with({.most = 1, .rate = 2});
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  connections(pair->right()).reject(pair->right().roce_requests.back().id, {}, pair->now());
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed));
  ASSERT_TRUE(comes());
  connections(pair->left()).disconnect(*left, pair->now());
  pair->run_for(Duration::ms(50));
  EXPECT_TRUE(is_refused());
  EXPECT_EQ(why(), "accept_rate");
  pair->run_for(Duration::ms(500));
  EXPECT_TRUE(comes());
}

// proves: AC-4
TEST_F(RoceGate, ARepeatedRequestTakesNoSecondPlaceAndOthersGoOn) {
  open_with({.most = 1});
  pair->set_faults_right("loss=0.5");
  ASSERT_TRUE(comes());
  pair->set_faults_right("");
  verbs::QueuePair* const made = left;
  EXPECT_TRUE(is_refused(true));
  left = made;
  expect_carries();
  connections(pair->right()).listeners().close(listener);
  connections(pair->left()).disconnect(*left, pair->now());
  expect_nothing_left();
}

}  // namespace
}  // namespace urnic::test
