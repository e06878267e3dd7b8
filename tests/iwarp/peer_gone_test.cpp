// Peers that disappear silently, and hosts that return: from the same port, or before this end has
// noticed that they restarted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "port/memory_port.h"
#include "sim/pair.h"
#include "tests/support/hand_peer.h"

namespace urnic::iwarp {
namespace {

using Kind = CmEvent::Kind;

// The engine has closed first and is in TIME-WAIT.
struct TimeWait : ::testing::Test {
  void SetUp() override {
    ASSERT_TRUE(p.up());
    engine().iwarp().disconnect(*p.qp, p.now);
    p.burst({});
    test::Cut fin;
    fin.flags = tcp::kFin | tcp::kAck;
    p.burst({fin});
    ASSERT_EQ(engine().tables().time_wait, 1u);
  }
  engine::Engine& engine() { return p.node().engine(); }
  std::vector<test::Answer> syn(std::uint64_t at) {
    test::Cut cut;
    cut.at = at;
    cut.flags = tcp::kSyn;
    return p.burst({cut});
  }
  test::HandPeer p;
};

TEST_F(TimeWait, IsReplacedByANewIncarnation_RFC9293_3_6_1) {
  const auto got = syn(100'000);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].seg.flags, tcp::kSyn | tcp::kAck);
  EXPECT_EQ(got[0].ack, 100'001u);
  const engine::EngineTables t = engine().tables();
  EXPECT_EQ(t.time_wait, 0u);
  EXPECT_EQ(t.connections, 1u);
  EXPECT_EQ(t.half_open, 1u);
}

TEST_F(TimeWait, AnOldSynHasNoEffect_RFC9293_3_6_1) {
  const auto got = syn(std::uint64_t{0} - 5000);
  for (const test::Answer& a : got) EXPECT_TRUE(a.pure_ack());
  EXPECT_EQ(engine().tables().time_wait, 1u);
  EXPECT_EQ(engine().tables().half_open, 0u);
}

// The left host connects. None of its frames arrive after its MPA Request.
struct Vanishing : ::testing::Test {
  void SetUp() override {
    EXPECT_TRUE(right().iwarp().listen(7000, 4));
    auto* asking = ask();
    ASSERT_TRUE(pair.run_until([&] { return !pair.right().events.empty(); }, Duration::s(1)));
    pair.set_faults_left("loss=1");
    pair.left().engine().iwarp_control().destroy(asking, pair.now());
    qp = pair.right().make_qp();
    ConnectParams params = right().iwarp().default_params();
    params.timeout = Duration::s(3);
    accepted = pair.now();
    ASSERT_TRUE(
        right().iwarp().accept(pair.right().events.front().request.id, *qp, params, accepted).ok());
    pair.right().events.clear();
  }
  engine::Engine& right() { return pair.right().engine(); }
  verbs::QueuePair* ask() {
    auto* asking = pair.left().make_qp();
    engine::Engine& left = pair.left().engine();
    EXPECT_TRUE(left.iwarp()
                    .connect(*asking, *SocketAddress::parse("10.0.0.2:7000"),
                             left.iwarp().default_params(), pair.now())
                    .ok());
    return asking;
  }
  sim::Pair pair{sim::PairOptions{}};
  verbs::QueuePair* qp = nullptr;
  Instant accepted;
};

// RFC 6581 9.2: the responder waits for the initiator's RTR, but not for ever.
TEST_F(Vanishing, APeerThatNeverSendsItsRtrIsGivenUp) {
  ASSERT_TRUE(pair.run_until([&] { return !pair.right().events.empty(); }, Duration::s(60)));
  const CmEvent& e = pair.right().events.front();
  EXPECT_EQ(e.kind, Kind::ConnectFailed);
  EXPECT_EQ(e.code, Errc::timed_out);
  EXPECT_EQ(e.qp, qp);
  EXPECT_LT(pair.now() - accepted, Duration::ms(3100));
  pair.run_for(Duration::s(10));
  EXPECT_EQ(right().iwarp().state().connections.size(), 0u);
}

// Its address has just failed to resolve, which says nothing about a host that sends us a SYN.
// proves: E-43
TEST_F(Vanishing, AHostThatIsBackIsNotRefused) {
  const auto failed = [&] {
    return right().interface().neighbours().state(*IpAddress::parse("10.0.0.1"), pair.now()) ==
           net::NeighbourState::Failed;
  };
  ASSERT_TRUE(pair.run_until(failed, Duration::s(60)));
  pair.set_faults_left("");
  pair.right().events.clear();
  const auto* again = ask();
  const auto asked = [&] {
    return !pair.right().events.empty() && pair.right().events.front().kind == Kind::ConnectRequest;
  };
  EXPECT_TRUE(pair.run_until(asked, Duration::s(3)));
  EXPECT_EQ(again->state, verbs::QpState::Rtr);
}

// A host restarts with the same seed: its first connection uses the port for which the server still
// has the old connection.
struct Restart : ::testing::Test {
  struct Host {
    Host(const char* address, std::uint64_t seed) {
      auto [own, other] = port::make_memory_pair();
      engine::Options o;
      o.addresses = {address};
      o.seed = seed;
      node = std::make_unique<sim::Node>(o, std::move(own));
      wire = std::move(other);
    }
    port::Port wire;  // the other end of its port
    std::unique_ptr<sim::Node> node;
  };
  static bool carry(Host& from, Host& to) {
    port::Frame frames[port::kBurst];
    const unsigned n = from.wire.rx_burst(0, frames, port::kBurst);
    for (unsigned i = 0; i < n; ++i) {
      const port::Frame& f = frames[i];
      port::Frame out{};
      if (to.wire.tx_reserve(0, f.len[0] + f.len[1], &out, 1) != 1) continue;
      std::memcpy(out.data[0], f.data[0], f.len[0]);
      if (f.len[1] != 0) std::memcpy(out.data[0] + f.len[0], f.data[1], f.len[1]);
      out.len[0] = f.len[0] + f.len[1];
      out.len[1] = 0;
      to.wire.tx_commit(0, &out, 1);
    }
    from.wire.rx_release(0, frames, n);
    return n != 0;
  }
  // Connects, and waits until that has succeeded or failed, or `limit` has passed.
  verbs::QpState connect(Host& client, Duration limit) {
    auto* qp = client.node->make_qp();
    engine::Engine& e = client.node->engine();
    EXPECT_TRUE(
        e.iwarp()
            .connect(*qp, *SocketAddress::parse("10.0.0.2:7000"), e.iwarp().default_params(), now)
            .ok());
    for (const Instant until = now + limit; now < until && qp->state != verbs::QpState::Rts;) {
      bool any = carry(client, server) | carry(server, client);
      any |= client.node->engine().poll(now) | server.node->engine().poll(now);
      while (!server.node->events.empty()) {
        const CmEvent event = server.node->events.front();
        server.node->events.pop_front();
        if (event.kind != Kind::ConnectRequest) continue;
        server_qp = server.node->make_qp();
        EXPECT_TRUE(server.node->engine()
                        .iwarp()
                        .accept(event.request.id, *server_qp,
                                server.node->engine().iwarp().default_params(), now)
                        .ok());
      }
      const Instant next =
          earlier(client.node->engine().next_deadline(), server.node->engine().next_deadline());
      now = any ? now + Duration::us(1) : std::min(until, std::max(next, now + Duration::us(1)));
    }
    return qp->state;
  }
  Instant now = Instant::from_ns(1000000000);
  Host server{"10.0.0.2/24", 1};
  verbs::QueuePair* server_qp = nullptr;
};

TEST_F(Restart, TheSynIsResentOnceTheOldConnectionIsReset_RFC9293_3_5_1) {
  EXPECT_TRUE(server.node->engine().iwarp().listen(7000, 4));
  Host before("10.0.0.1/24", 9);
  ASSERT_EQ(connect(before, Duration::ms(100)), verbs::QpState::Rts);
  const auto* old = server_qp;
  Host after("10.0.0.1/24", 9);
  EXPECT_EQ(connect(after, Duration::ms(100)), verbs::QpState::Rts);
  EXPECT_EQ(old->state, verbs::QpState::Error);
  EXPECT_EQ(server.node->engine().iwarp().state().connections.size(), 1u);
}

}  // namespace
}  // namespace urnic::iwarp
