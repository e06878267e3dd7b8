// Path MTUs where the route to a peer has a smaller IP MTU than the port: what an initiator
// requests, what a responder accepts, and what Modify QP refuses.
#include <gtest/gtest.h>

#include "tests/roce/connect_ends.h"

namespace urnic::test {
namespace {

using verbs::QpState;

// Only the route between these two ends has that IP MTU.
net::RouteMtu route_of(int which, std::uint32_t mtu) {
  return [=](const IpAddress& own, const IpAddress& to) -> std::optional<std::uint32_t> {
    for (const bool v6 : {false, true}) {
      if (own == address_of(which, v6) && to == address_of(1 - which, v6)) return mtu;
    }
    return std::nullopt;
  };
}

class RoceRouteMtu : public RoceConnectEnds {
 protected:
  // IP MTUs: of both ports, and of the route at each end.
  void connect_over(std::uint32_t ports, std::uint32_t left_route, std::uint32_t right_route) {
    sim::PairOptions o = both();
    o.mtu = ports;
    o.left.route_mtu = route_of(0, left_route);
    o.right.route_mtu = route_of(1, right_route);
    open(o);
    ASSERT_TRUE(ask().ok());
    ASSERT_TRUE(asked());
    ASSERT_TRUE(answer().ok());
    ASSERT_TRUE(established());
    expect_carries();
  }
  void expect_mtu(ib::PathMtu mtu) {
    EXPECT_EQ(roce::context_of(*left).attributes.path_mtu, mtu);
    EXPECT_EQ(roce::context_of(*right).attributes.path_mtu, mtu);
  }
  // How many requests the right end has rejected before it accepted one.
  std::uint64_t rejections() {
    EngineStats s;
    pair->left().engine().fill_stats(&s);
    return s.roce.cm_received - 1;
  }
};

// proves: IB-137
TEST_F(RoceRouteMtu, AnInitiatorRequestsTheLargestThatFitsItsRoute) {
  for (const auto& [route, mtu] : {std::pair{9000u, ib::PathMtu::k4096},
                                   {4096 + 84, ib::PathMtu::k4096},
                                   {4096 + 83, ib::PathMtu::k2048},
                                   {1400, ib::PathMtu::k1024},
                                   {1000, ib::PathMtu::k512}}) {
    connect_over(5000, route, 65536);
    expect_mtu(mtu);
    EXPECT_EQ(rejections(), 0u) << route;
  }
}

// proves: IB-137
TEST_F(RoceRouteMtu, AResponderWithANarrowerRouteMakesTheInitiatorComeDown) {
  connect_over(5000, 9000, 1400);
  expect_mtu(ib::PathMtu::k1024);
  EXPECT_EQ(rejections(), 2u) << "of 4096 and of 2048";
}

TEST_F(RoceRouteMtu, ARouteNeverCarriesMoreThanThePort) {
  connect_over(1500, 9000, 9000);
  expect_mtu(ib::PathMtu::k1024);
}

TEST_F(RoceRouteMtu, ModifyRefusesWhatTheRouteCannotCarryAndNamesIt) {
  sim::PairOptions o = both();
  o.left.route_mtu = route_of(0, 1000);
  open(o);
  roce::ControlPath& roce = pair->left().engine().roce_control();
  ASSERT_EQ(roce.move(*left, to_init(), pair->now()), roce::Modified::Ok);
  for (const bool by_ipv6 : {false, true}) {
    ByHand h;
    h.v6 = by_ipv6;
    EXPECT_EQ(roce.move(*left, to_rtr(h, 0, 77, 1), pair->now()), roce::Modified::BadValue);
    EXPECT_EQ(left->state, QpState::Init);
  }
  QpAttributes a;
  a.dest_qp = 77;
  a.path.emplace();
  a.path->remote = "10.0.0.2";
  a.path_mtu = 1024;
  a.rq_psn = 1;
  a.responder_depth = 1;
  a.min_rnr_timer = 1;
  const auto refused = roce.modify(*left, QpState::Rtr, a, pair->now());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  EXPECT_NE(refused.error().message.find("IP MTU 1000 of the route to 10.0.0.2"), std::string::npos)
      << refused.error().message;
  a.path_mtu = 512;
  EXPECT_TRUE(roce.modify(*left, QpState::Rtr, a, pair->now()).ok());
}

// The new path has the path MTU of the old one.
TEST_F(RoceRouteMtu, ANewPathMustCarryThePathMtuOfTheQueuePair) {
  sim::PairOptions o = both();
  o.left.route_mtu = [](const IpAddress&, const IpAddress& to) {
    return to == address_of(1) ? std::optional<std::uint32_t>() : 1000;
  };
  up(o);
  roce::ControlPath& roce = pair->left().engine().roce_control();
  roce::QpChange c;
  c.to = QpState::Sqd;
  ASSERT_EQ(roce.move(*left, c, pair->now()), roce::Modified::Ok);
  pair->run_for(Duration::ms(1));
  c.mask |= verbs::kQpAttrAv;
  c.av.local = address_of(0);
  for (const auto& [peer, result] :
       {std::pair{2, roce::Modified::BadValue}, {1, roce::Modified::Ok}}) {
    c.av.remote = address_of(peer);
    EXPECT_EQ(roce.move(*left, c, pair->now()), result);
  }
}

}  // namespace
}  // namespace urnic::test
