// Forged SYNs: the listener's table of half-open connections is bounded, and real connections still
// open (RFC 4987).
#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/iwarp/hand_wire.h"
#include "tests/support/hand_peer.h"

namespace urnic::test {
namespace {

TEST(Listener, ASynFloodIsAnsweredByCookies_RFC4987_3_6) {
  HandPeer p;
  p.flood = 50;
  ASSERT_TRUE(p.up());
  const EngineStats s = p.engine_stats();
  EXPECT_EQ(s.iwarp.cookies_sent, 47u);  // for all of the flood except the backlog of four, and for
                                         // ours
  EXPECT_EQ(s.iwarp.cookies_accepted, 1u);
  EXPECT_EQ(s.connections_opened, 5u) << "nothing is kept for the others";
  EXPECT_TRUE(p.fast());
  Rng rng(3);
  const auto data = testing::random_bytes(rng, 300);
  p.send(0, p.write(64, data));
  EXPECT_EQ(p.at(64, 300), data);
}

TEST(Listener, WithRoomNoCookieIsSent_RFC4987_3_6) {
  HandPeer p;
  p.flood = 3;
  ASSERT_TRUE(p.up());
  EXPECT_EQ(p.engine_stats().iwarp.cookies_sent, 0u);
}

TEST(Listener, AForgedAnswerOpensNothing_RFC4987_3_6) {
  HandPeer p;
  p.flood = 50;
  ASSERT_TRUE(p.up());
  Cut forged;
  forged.source_port = 20000;
  const auto got = p.burst({forged});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(got[0].seg.has(tcp::kRst));
  EXPECT_EQ(p.engine_stats().iwarp.cookies_accepted, 1u);
}

// A request that the program has been told of outlives its listener, but its place in the backlog
// does not.
// proves: E-30, E-50
TEST(Listener, ARequestThatOutlivesItsListenerTakesNoPlaceOfTheNextOne) {
  HandWire w;
  engine::Engine &left = w.left.engine(), &right = w.right.engine();
  auto& requests = w.right.node->events;
  const auto listen = [&] {
    auto bound =
        right.iwarp_control().bind({.at = {IpAddress::any_v6(), 7000}}, verbs::Service::Rc);
    EXPECT_TRUE(bound.ok() && right.iwarp_control().listen(**bound, 1).ok());
    return *bound;
  };
  const auto connect = [&] {
    verbs::QueuePair* const qp = w.left.node->make_qp();
    const auto params = left.iwarp().default_params();
    EXPECT_TRUE(left.iwarp().connect(*qp, {IpAddress::v4(10, 0, 0, 2), 7000}, params, w.now).ok());
    w.run_for(Duration::ms(100));
    return qp;
  };
  verbs::Listener* const first = listen();
  verbs::QueuePair* const qp = connect();
  ASSERT_EQ(requests.size(), 1u);
  const auto waiting = requests[0].request.id;
  EXPECT_EQ(right.tables().pending, 1u);
  right.iwarp_control().close(*first, w.now);
  ASSERT_EQ(right.iwarp().find(waiting)->backlog.listener(), nullptr);

  verbs::Listener* const second = listen();
  EXPECT_EQ(right.tables().pending, 0u);
  connect();
  connect();
  ASSERT_EQ(requests.size(), 2u) << "as many as the backlog takes";
  EXPECT_EQ(right.tables().pending, 1u);
  verbs::QueuePair* const accepted = w.right.node->make_qp();
  const auto params = right.iwarp().default_params();
  ASSERT_TRUE(right.iwarp().accept(waiting, *accepted, params, w.now).ok());
  w.run_for(Duration::ms(100));
  EXPECT_EQ(qp->state, verbs::QpState::Rts);
  EXPECT_EQ(right.tables().pending, 1u) << "the place is the other request's";
  right.iwarp_control().close(*second, w.now);
}

// The handshake of TCP is done, but the peer has not sent its MPA Request: nobody could answer it.
// proves: E-50
TEST(Listener, AConnectionWithoutARequestEndsWithItsListener) {
  HandWire w;
  engine::Engine &left = w.left.engine(), &right = w.right.engine();
  auto listener =
      right.iwarp_control().bind({.at = {IpAddress::any_v6(), 7000}}, verbs::Service::Rc);
  ASSERT_TRUE(listener.ok());
  ASSERT_TRUE(right.iwarp_control().listen(**listener, 4).ok());
  bool without = false;
  w.watch = [&](Bytes f, bool) -> std::vector<Bytes> {
    const auto s = WireSegment::of(f);
    if (!s || s->seg.payload.empty()) return {std::move(f)};
    without = true;
    return {forge(*s, false, right.interface().mac(), s->seg, {})};  // the ACK alone
  };
  verbs::QueuePair* const qp = w.left.node->make_qp();
  const auto params = left.iwarp().default_params();
  ASSERT_TRUE(left.iwarp().connect(*qp, {IpAddress::v4(10, 0, 0, 2), 7000}, params, w.now).ok());
  ASSERT_TRUE(w.run_until([&] { return without; }, Duration::s(1)));
  w.run_for(Duration::ms(1));
  ASSERT_EQ(right.tables().pending, 1u);
  ASSERT_EQ(right.tables().half_open, 0u);
  right.iwarp_control().close(**listener, w.now);
  EXPECT_EQ(right.tables().connections, 0u);
  w.run_for(Duration::ms(1));
  ASSERT_EQ(w.left.node->events.size(), 1u) << "it hears of it at once";
  EXPECT_EQ(w.left.node->events[0].kind, engine::CmEvent::Kind::ConnectFailed);
  EXPECT_TRUE(w.right.node->events.empty());
}

}  // namespace
}  // namespace urnic::test
