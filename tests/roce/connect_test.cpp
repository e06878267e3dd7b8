// RoCE connections made by connect, accept and reject in two simulated engines: the events at both
// ends, and the moves of their queue pairs.
#include <gtest/gtest.h>

#include "port/memory_port.h"
#include "tests/roce/connect_ends.h"

namespace urnic::test {
namespace {

using verbs::QpState;
using verbs::WrOp;

class RoceConnect : public RoceConnectEnds {};
class RoceConnectBoth : public RoceConnectEnds, public ::testing::WithParamInterface<bool> {};

// ---- made

// proves: IB-135, IB-136
TEST_P(RoceConnectBoth, EachEndHasTheValuesOfTheOtherAndWorkSucceeds) {
  v6 = GetParam();
  open();
  roce::ConnectParams p = wish(3, 5);
  p.retry_count = 2;
  p.rnr_retry = 4;
  p.traffic_class = 104;
  p.flow_control = false;
  p.min_rnr_timer = 9;
  const std::string mine(56, 'q'), its = "an answer";
  p.private_data = view(mine);
  ASSERT_TRUE(ask(p).ok());
  EXPECT_EQ(left->state, QpState::Init);
  ASSERT_TRUE(asked());
  const verbs::ConnectionRequest& r = pair->right().roce_requests.front();
  EXPECT_EQ(r.peer.ip, address_of(0, v6));
  EXPECT_GE(r.peer.port, 49152);
  EXPECT_EQ(r.local.ip, address_of(1, v6));
  EXPECT_EQ(r.local.port, 7000);
  EXPECT_EQ(r.ird, 5);  // what the peer asks for, we serve
  EXPECT_EQ(r.ord, 3);
  EXPECT_EQ(r.roce_peer.qp_number, left->number());
  EXPECT_EQ(r.roce_peer.retry_count, 2);
  EXPECT_EQ(r.roce_peer.rnr_retry, 4);
  EXPECT_FALSE(r.roce_peer.flow_control);
  EXPECT_EQ(std::string(r.private_data.begin(), r.private_data.end()), mine);
  p = wish(4, 9);
  p.rnr_retry = 3;
  p.min_rnr_timer = 10;
  p.private_data = view(its);
  ASSERT_TRUE(answer(p).ok());
  EXPECT_EQ(right->state, QpState::Rts) << "what is sent now finds a peer that is ready";
  ASSERT_TRUE(established());
  EXPECT_EQ(left->state, QpState::Rts);
  EXPECT_EQ(right->state, QpState::Rts);
  const std::string got = find(pair->left(), Kind::Established)->private_data;
  EXPECT_EQ(got.size(), 196u);
  EXPECT_EQ(got.substr(0, its.size()), its);
  EXPECT_EQ(got[its.size()], '\0');
  const RocePeer& peer = find(pair->left(), Kind::Established)->roce_peer;
  EXPECT_EQ(peer.qp_number, right->number());
  EXPECT_EQ(peer.rnr_retry, 3);
  EXPECT_TRUE(peer.flow_control) << "left alone it is what the engine does";
  EXPECT_EQ(peer.reject_reason, 0);
  EXPECT_EQ(find(pair->right(), Kind::Established)->roce_peer.qp_number, 0u)
      << "an RTU says nothing";

  const ib::QpAttributes& a = roce::context_of(*left).attributes;
  const ib::QpAttributes& b = roce::context_of(*right).attributes;
  EXPECT_EQ(a.dest_qp, right->number());
  EXPECT_EQ(b.dest_qp, left->number());
  EXPECT_EQ(a.rq_psn, b.sq_psn);
  EXPECT_EQ(b.rq_psn, a.sq_psn);
  EXPECT_NE(a.sq_psn, b.sq_psn);
  EXPECT_EQ(a.responder_depth, 3);
  EXPECT_EQ(b.initiator_depth, 3) << "no more than the peer serves";
  EXPECT_EQ(a.initiator_depth, 4) << "no more than the peer serves";
  EXPECT_EQ(b.responder_depth, 4);
  EXPECT_EQ(a.retry_count, 2);
  EXPECT_EQ(b.retry_count, 2) << "for both ends";
  EXPECT_EQ(a.rnr_retry, 3) << "as the peer says";
  EXPECT_EQ(b.rnr_retry, 4) << "as the peer says";
  EXPECT_EQ(a.min_rnr_timer, 9);
  EXPECT_EQ(b.min_rnr_timer, 10);
  EXPECT_EQ(a.av.traffic_class, 104);
  EXPECT_EQ(b.av.traffic_class, 104) << "as the peer asks";
  EXPECT_EQ(a.path_mtu, ib::PathMtu::k1024);
  EXPECT_EQ(b.path_mtu, ib::PathMtu::k1024);
  EXPECT_EQ(a.ack_timeout, 19) << "twice the way, and the delay";
  EXPECT_EQ(b.ack_timeout, 19);
  EXPECT_EQ(a.access & b.access, verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic);
  EXPECT_EQ(a.av.remote, address_of(1, v6));
  EXPECT_EQ(b.av.remote, address_of(0, v6));
  expect_carries();
  EXPECT_EQ(told(pair->left(), Kind::Established), 1u);
  EXPECT_EQ(told(pair->right(), Kind::Established), 1u);
}
INSTANTIATE_TEST_SUITE_P(Versions, RoceConnectBoth, ::testing::Bool(),
                         [](const auto& i) { return i.param ? "IPv6" : "IPv4"; });

// proves: IB-128
TEST_F(RoceConnect, EitherEndMayChooseItsOwnTimeout) {
  open();
  roce::ConnectParams p = wish();
  p.ack_timeout = 21;
  ASSERT_TRUE(ask(p).ok());
  ASSERT_TRUE(asked());
  p.ack_timeout = 14;
  ASSERT_TRUE(answer(p).ok());
  ASSERT_TRUE(established());
  EXPECT_EQ(roce::context_of(*left).attributes.ack_timeout, 21);
  EXPECT_EQ(roce::context_of(*right).attributes.ack_timeout, 14);
}

TEST_F(RoceConnect, WithIrdZeroThePeerMayNotRead) {
  open();
  ASSERT_TRUE(ask(wish(0, 4)).ok());
  ASSERT_TRUE(asked());
  ASSERT_TRUE(answer().ok());
  ASSERT_TRUE(established());
  EXPECT_EQ(roce::context_of(*left).attributes.access, verbs::kRemoteWrite);
  EXPECT_EQ(roce::context_of(*right).attributes.initiator_depth, 0);
}

TEST_F(RoceConnect, AccessRightsSetInInitAreKept) {
  open();
  roce::QpChange c = to_init();
  c.access = verbs::kRemoteRead;
  ASSERT_EQ(pair->left().engine().roce_control().move(*left, c, pair->now()), roce::Modified::Ok);
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  ASSERT_TRUE(answer().ok());
  ASSERT_TRUE(established());
  EXPECT_EQ(roce::context_of(*left).attributes.access, verbs::kRemoteRead);
}

// proves: IB-135
TEST_F(RoceConnect, WithinOneDeviceFramesAreLoopedBack) {
  open();
  verbs::QueuePair* const other = pair->left().make_roce_qp();
  ASSERT_NE(listen(pair->left(), "10.0.0.1:7001"), nullptr);
  ASSERT_TRUE(connections(pair->left())
                  .connect(*left, *SocketAddress::parse("10.0.0.1:7001"), wish(), pair->now())
                  .ok());
  sim::Node& n = pair->left();
  ASSERT_TRUE(pair->run_until([&] { return !n.roce_requests.empty(); }, Duration::s(5)));
  ASSERT_TRUE(connections(n).accept(n.roce_requests.front().id, *other, wish(), pair->now()).ok());
  ASSERT_TRUE(pair->run_until([&] { return told(n, Kind::Established) == 2; }, Duration::s(5)));
  connections(n).disconnect(*left, pair->now());
  ASSERT_TRUE(pair->run_until([&] { return told(n, Kind::Disconnected) == 2; }, Duration::s(5)));
  expect_nothing_left();
}

// The largest packets that both ends accept.
// proves: IB-137
TEST(RoceConnectMtu, APeerThatRejectsTheMtuIsRetriedWithASmallerOne) {
  auto [a, b] = port::make_memory_pair({.max_frame = 9018});
  engine::Options options;
  options.speaks_roce = true;
  options.mtu = 9000;
  options.addresses = {"10.0.0.1/24"};
  sim::Node one(options, std::move(a));
  options.mtu = 1500;
  options.addresses = {"10.0.0.2/24"};
  options.seed = 2;
  sim::Node two(options, std::move(b));
  Instant now = Instant::from_ns(1000);
  const auto pass = [&] {
    for (int i = 0; i < 200; ++i) {
      now = now + Duration::us(20);
      one.engine().poll(now);
      two.engine().poll(now);
    }
  };
  verbs::QueuePair *x = one.make_roce_qp(), *y = two.make_roce_qp();
  roce::Listeners& all = two.engine().roce_control().connections().listeners();
  auto bound = all.bind({{IpAddress::any_v6(), 7000}, false, false});
  ASSERT_TRUE(bound);
  ASSERT_TRUE(all.listen(bound.value(), 1));
  ASSERT_TRUE(one.engine()
                  .roce_control()
                  .connections()
                  .connect(*x, *SocketAddress::parse("10.0.0.2:7000"), {}, now)
                  .ok());
  pass();
  ASSERT_EQ(two.roce_requests.size(), 1u);
  ASSERT_TRUE(two.engine()
                  .roce_control()
                  .connections()
                  .accept(two.roce_requests.front().id, *y, {}, now)
                  .ok());
  pass();
  EXPECT_EQ(x->state, QpState::Rts);
  EXPECT_EQ(y->state, QpState::Rts);
  EXPECT_EQ(roce::context_of(*x).attributes.path_mtu, ib::PathMtu::k1024);
  EXPECT_EQ(roce::context_of(*y).attributes.path_mtu, ib::PathMtu::k1024);
}

// ---- refused

// proves: IB-137
TEST_F(RoceConnect, ARejectionArrivesWithItsPrivateData) {
  open();
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(asked());
  connections(pair->right())
      .reject(pair->right().roce_requests.front().id, view("no such volume"), pair->now());
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed));
  const engine::CmEvent& e = *find(pair->left(), Kind::ConnectFailed);
  EXPECT_EQ(e.code, Errc::rejected);
  EXPECT_EQ(e.private_data.size(), 148u);
  EXPECT_STREQ(e.private_data.c_str(), "no such volume");
  EXPECT_EQ(left->state, QpState::Error);
  EXPECT_TRUE(pair->right().events.empty());
  expect_nothing_left();
  EXPECT_EQ(pair->left().events.size(), 1u);
}

// proves: IB-137
TEST_F(RoceConnect, WithoutAListenerTheConnectionIsRefusedAtOnce) {
  open();
  connections(pair->right()).listeners().close(listener);
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed, Duration::ms(100)));
  EXPECT_EQ(find(pair->left(), Kind::ConnectFailed)->code, Errc::refused);
  EXPECT_EQ(left->state, QpState::Error);
  expect_nothing_left();
}

TEST_F(RoceConnect, AListenerThatOpensLaterIsFoundWithRefusalRetry) {
  open();
  connections(pair->right()).listeners().close(listener);
  roce::ConnectParams p = wish();
  p.refusal_retry = Duration::ms(100);
  ASSERT_TRUE(ask(p).ok());
  pair->run_for(Duration::ms(40));
  EXPECT_TRUE(pair->left().events.empty());
  ASSERT_NE(listen(pair->right(), "[::]:7000"), nullptr);
  ASSERT_TRUE(asked(Duration::ms(20)));
  ASSERT_TRUE(answer().ok());
  ASSERT_TRUE(established());
  expect_carries();
}

TEST_F(RoceConnect, WithoutAListenerRefusalRetryEndsAfterItsTime) {
  open();
  connections(pair->right()).listeners().close(listener);
  roce::ConnectParams p = wish();
  p.refusal_retry = Duration::ms(100);
  const Instant began = pair->now();
  ASSERT_TRUE(ask(p).ok());
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed));
  EXPECT_EQ(find(pair->left(), Kind::ConnectFailed)->code, Errc::refused);
  EXPECT_GE(pair->now() - began, Duration::ms(100));
  EXPECT_LT(pair->now() - began, Duration::ms(120));
  expect_nothing_left();
}

// proves: IB-140
TEST_F(RoceConnect, APeerWithoutRoceDoesNotAnswerUntilTheConsumersTimeout) {
  sim::PairOptions o = both();
  o.right.speaks_roce = false;
  open(o);
  const Instant began = pair->now();
  roce::ConnectParams p = wish();
  p.timeout = Duration::ms(3456);
  ASSERT_TRUE(ask(p).ok());
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed));
  EXPECT_EQ(find(pair->left(), Kind::ConnectFailed)->code, Errc::timed_out);
  EXPECT_GE(pair->now() - began, Duration::ms(3456));
  EXPECT_LT(pair->now() - began, Duration::ms(3458));
  EXPECT_EQ(left->state, QpState::Error);
  expect_nothing_left();
  EXPECT_EQ(pair->left().events.size(), 1u);
}

TEST_F(RoceConnect, ASlowConsumerIsWaitedFor) {
  open();
  roce::ConnectParams p = wish();
  p.timeout = Duration::s(60);
  ASSERT_TRUE(ask(p).ok());
  ASSERT_TRUE(asked());
  pair->run_for(Duration::s(40));
  EXPECT_EQ(pair->right().roce_requests.size(), 1u) << "told once, however often it came";
  ASSERT_TRUE(answer().ok());
  ASSERT_TRUE(established(Duration::ms(10)));
}

TEST_F(RoceConnect, AcceptingARequestThatWasGivenUpFailsWithClosed) {
  open();
  roce::ConnectParams p = wish();
  p.timeout = Duration::ms(500);
  ASSERT_TRUE(ask(p).ok());
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed));
  pair->run_for(Duration::ms(1));
  ASSERT_EQ(pair->right().roce_requests.size(), 1u);
  const auto late = answer();
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Errc::closed);
  EXPECT_EQ(right->state, QpState::Reset) << "as it was";
  expect_nothing_left();
}

TEST_F(RoceConnect, InvalidCallsAreRefusedAndChangeNothing) {
  open();
  const std::string long_one(57, 'x'), longer(197, 'x');
  roce::ConnectParams p = wish();
  p.private_data = view(long_one);
  EXPECT_EQ(ask(p).error().code, Errc::invalid_argument);
  EXPECT_EQ(connections(pair->left())
                .connect(*left, *SocketAddress::parse("192.0.2.1:7000"), wish(), pair->now())
                .error()
                .code,
            Errc::unreachable);
  EXPECT_EQ(left->state, QpState::Reset);
  ASSERT_TRUE(ask().ok());
  EXPECT_EQ(ask().error().code, Errc::wrong_state) << "it is being connected";
  ASSERT_TRUE(asked());
  p.private_data = view(longer);
  EXPECT_EQ(answer(p).error().code, Errc::invalid_argument);
  ASSERT_TRUE(answer().ok()) << "it still waits";
  EXPECT_EQ(answer().error().code, Errc::wrong_state);
  verbs::QueuePair* const other = pair->right().make_roce_qp();
  EXPECT_EQ(connections(pair->right())
                .accept(pair->right().roce_requests.front().id, *other, wish(), pair->now())
                .error()
                .code,
            Errc::closed)
      << "it has been answered";
  ASSERT_TRUE(established());
}

// ---- listeners

TEST_F(RoceConnect, ABoundPortIsReserved) {
  open();
  roce::Listeners& all = connections(pair->right()).listeners();
  const auto bind = [&](const std::string& at, bool v6_only = false, bool shared = false) {
    return all.bind({*SocketAddress::parse(at), v6_only, shared});
  };
  const auto refused = [](const auto& result, Errc why) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, why);
  };
  refused(bind("10.0.0.2:7000"), Errc::in_use);
  refused(bind("10.0.0.9:7001"), Errc::invalid_argument);
  EXPECT_TRUE(bind("0.0.0.0:7001"));
  EXPECT_TRUE(bind("[::]:7001", true)) << "of the other version";
  auto three = bind("10.0.0.2:7002", false, true), four = bind("[::]:7002", false, true);
  ASSERT_TRUE(three);
  ASSERT_TRUE(four) << "shared";
  EXPECT_TRUE(all.listen(three.value(), 1));
  refused(bind("0.0.0.0:7002", false, true), Errc::in_use);  // one of them listens
  refused(all.listen(four.value(), 1), Errc::in_use);
  all.close(three.value());
  EXPECT_TRUE(all.listen(four.value(), 1));
  const std::uint16_t chosen = bind("10.0.0.2:0").value()->port(),
                      next = bind("10.0.0.2:0").value()->port();
  EXPECT_GE(chosen, 49152);
  EXPECT_NE(chosen, next);
}

TEST_F(RoceConnect, AListenerOfOneIpVersionAcceptsOnlyThatVersion) {
  open();
  connections(pair->right()).listeners().close(listener);
  ASSERT_NE(listen(pair->right(), "[::]:7000", 8, true), nullptr);
  ASSERT_TRUE(ask().ok());
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed));
  EXPECT_EQ(find(pair->left(), Kind::ConnectFailed)->code, Errc::refused);
  v6 = true;
  left = pair->left().make_roce_qp();
  ASSERT_TRUE(ask().ok());
  EXPECT_TRUE(asked());
}

TEST_F(RoceConnect, ConnectingToABoundPortThatDoesNotListenIsRefused) {
  open();
  ASSERT_TRUE(connections(pair->right()).listeners().bind({{IpAddress::any_v6(), 7001}}));
  ASSERT_TRUE(connections(pair->left())
                  .connect(*left, *SocketAddress::parse("10.0.0.2:7001"), wish(), pair->now())
                  .ok());
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed));
  EXPECT_EQ(find(pair->left(), Kind::ConnectFailed)->code, Errc::refused);
}

}  // namespace
}  // namespace urnic::test
