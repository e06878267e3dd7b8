// What the engine owes, to the peer or to itself, without anybody asking again (E-51).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "net/arp.h"
#include "net/ethernet.h"
#include "tests/engine/hand_wire.h"
#include "tests/engine/rx_path.h"

namespace urnic::test {
namespace {

// proves: E-51
TEST_F(RxPath, E51_TheEndOfWhatThereIsToSendIsPushedAndNothingBefore) {
  ASSERT_TRUE(p.up());
  const Octets first = p.write(0, Octets(100, 1));
  p.send(0, first);
  for (const std::uint32_t length : {100u, 5000u}) {
    const verbs::Sge sge{p.to(0), length, p.stag};
    verbs::SendWr wr;
    wr.op = verbs::WrOp::Write;
    wr.sges = {&sge, 1};
    wr.rkey = 0x1234;
    ASSERT_EQ(p.node().post_send(*p.qp, wr, p.now), verbs::Post::Ok);
    std::vector<Answer> sent;
    for (Answer& a : p.acknowledge(first.size())) {
      if (!a.payload.empty()) sent.push_back(std::move(a));
    }
    ASSERT_GE(sent.size(), length / 1460 + 1);
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(sent[i].seg.has(tcp::kPsh), i + 1 == sent.size()) << length << " octets, " << i;
    }
    p.acknowledge(first.size());
  }
}

// What is kept is TCP's from now on: the consumer need not wait for the peer.
// proves: E-23, E-51
TEST_F(RxPath, E23_WhatIsKeptCompletesAsSoonAsItHasLeft) {
  ASSERT_TRUE(p.up());
  const Octets first = p.write(0, Octets(100, 1));
  p.send(0, first);
  p.acknowledge(first.size());
  const verbs::Sge sge{p.to(0), 16, p.stag};
  verbs::SendWr wr;
  wr.wr_id = 5;
  wr.flags = verbs::kSignaled | verbs::kInline;
  wr.sges = {&sge, 1};
  ASSERT_EQ(p.node().post_send(*p.qp, wr, p.now), verbs::Post::Ok);
  ASSERT_EQ(p.sends().size(), 1u);
  EXPECT_EQ(p.sends()[0].completion.wr_id, 5u);
}

// Who accepts asks a silent peer whether it is there, as who connects does.
// proves: E-43, E-51
TEST_F(RxPath, E43_AnAcceptedConnectionIsKeptAlive) {
  p.options.keepalive_idle = Duration::s(3);
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) { c.keepalive = true; }));
  p.pass(Duration::ms(100));
  EXPECT_TRUE(p.pass(Duration::ms(2500)).empty());
  EXPECT_FALSE(p.pass(Duration::s(1)).empty());
}

// proves: E-51
TEST_F(RxPath, E51_TimeWaitEndsByItself) {
  ASSERT_TRUE(p.up());
  p.node().engine().iwarp().disconnect(*p.qp, p.now);
  p.burst({});
  Cut fin;
  fin.flags = tcp::kFin | tcp::kAck;
  p.burst({fin});
  ASSERT_EQ(p.node().engine().tables().time_wait, 1u);
  p.pass(Duration::s(300));
  EXPECT_EQ(p.node().engine().tables().time_wait, 0u);
}

// Every frame of a connection has the tag of its host's network.
// proves: E-48
TEST(Vlan, E48_FramesOfConnectionsAreTagged) {
  sim::PairOptions o;
  o.left.vlan = o.right.vlan = 7;
  sim::Pair pair(o);
  EXPECT_TRUE(pair.connect(*pair.left().make_qp(), *pair.right().make_qp()));
}

// Nobody hurries the consumer that a request waits for.
// proves: E-51
TEST(Request, E51_WaitsForItsConsumerLongerThanForItsPeer) {
  HandWire w;
  Error error;
  ASSERT_NE(w.right.engine().iwarp().listen(7000, 4, &error), nullptr);
  auto* qp = w.left.node->make_qp();
  engine::ConnectParams patient = w.left.engine().default_params();
  patient.timeout = Duration::s(60);
  ASSERT_TRUE(w.left.engine()
                  .iwarp()
                  .connect(*qp, *SocketAddress::parse("10.0.0.2:7000"), patient, w.now)
                  .ok());
  ASSERT_TRUE(w.run_until([&] { return !w.right.node->events.empty(); }, Duration::s(1)));
  w.run_for(Duration::s(15));
  auto* there = w.right.node->make_qp();
  EXPECT_TRUE(w.right.engine()
                  .iwarp()
                  .accept(w.right.node->events.front().connection, *there,
                          w.right.engine().default_params(), w.now)
                  .ok());
  EXPECT_TRUE(w.run_until([&] { return qp->state == verbs::QpState::Rts; }, Duration::s(1)));
}

// Two hosts with a connection, between which the test sees every frame.
struct Neighbours : ::testing::Test {
  void SetUp() override {
    Error error;
    ASSERT_NE(right().iwarp().listen(7000, 4, &error), nullptr);
    here = w.left.node->make_qp();
    ASSERT_TRUE(
        left()
            .iwarp()
            .connect(*here, *SocketAddress::parse("10.0.0.2:7000"), left().default_params(), w.now)
            .ok());
    ASSERT_TRUE(w.run_until([&] { return !w.right.node->events.empty(); }, Duration::s(1)));
    there = w.right.node->make_qp();
    ASSERT_TRUE(right()
                    .iwarp()
                    .accept(w.right.node->events.front().connection, *there,
                            right().default_params(), w.now)
                    .ok());
    ASSERT_TRUE(w.run_until([&] { return there->state == verbs::QpState::Rts; }, Duration::s(1)));
    w.run_for(Duration::ms(10));
  }
  engine::Engine& left() { return w.left.engine(); }
  engine::Engine& right() { return w.right.engine(); }
  HandWire w;
  verbs::QueuePair *here = nullptr, *there = nullptr;
};

// The peer's address moves to another machine's card, as in a fail-over: its connections follow.
// proves: E-51
TEST_F(Neighbours, E51_AConnectionFollowsItsNeighbourToAnotherMac) {
  const MacAddress moved{{2, 0, 0, 0, 0, 0x77}}, everybody{{255, 255, 255, 255, 255, 255}};
  Bytes arp(net::kEthernetHeader + net::kArpPacket);
  net::emit_ethernet({everybody, moved, 0, net::kEtherTypeArp}, arp.data());
  net::ArpPacket a;
  a.operation = net::kArpRequest;
  a.sender_mac = moved;
  a.sender_ip = *IpAddress::parse("10.0.0.1");
  a.target_ip = *IpAddress::parse("10.0.0.2");
  net::emit_arp(a, arp.data() + net::kEthernetHeader);
  w.send(arp, true);
  std::vector<MacAddress> to;
  w.watch = [&](Bytes f, bool to_right) -> std::vector<Bytes> {
    if (!to_right && WireSegment::of(f)) to.push_back(MacAddress::from_bytes(f.data()));
    return {std::move(f)};
  };
  w.run_for(Duration::us(100));
  to.clear();
  std::vector<std::uint8_t> bytes(64);
  const auto key = w.right.node->register_memory(bytes.data(), bytes.size(), 0);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(bytes.data()), 64, key};
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Write;
  wr.sges = {&sge, 1};
  ASSERT_EQ(w.right.node->post_send(*there, wr, w.now), verbs::Post::Ok);
  w.run_for(Duration::us(100));
  ASSERT_FALSE(to.empty());
  for (const MacAddress& mac : to) EXPECT_EQ(mac, moved);
}

// A queue pair that begins anew has dropped nothing yet: its first receive tells the peer nothing.
// proves: E-17, E-51
TEST_F(Neighbours, E17_AResetForgetsThatAConnectionWaitedForAReceive) {
  verbs::SendWr wr;
  ASSERT_EQ(w.left.node->post_send(*here, wr, w.now), verbs::Post::Ok);
  w.run_for(Duration::us(100));
  ASSERT_TRUE(there->starved);
  for (auto* e : {&left(), &right()}) {
    auto& qp = e == &left() ? *here : *there;
    for (const auto to : {verbs::QpState::Error, verbs::QpState::Reset, verbs::QpState::Init}) {
      ASSERT_EQ(e->modify_qp(qp, to, verbs::kQpAttrState, w.now), verbs::QpVerdict::Ok);
    }
  }
  w.run_for(Duration::ms(10));
  w.right.node->events.clear();
  ASSERT_TRUE(
      left()
          .iwarp()
          .connect(*here, *SocketAddress::parse("10.0.0.2:7000"), left().default_params(), w.now)
          .ok());
  ASSERT_TRUE(w.run_until([&] { return !w.right.node->events.empty(); }, Duration::s(1)));
  ASSERT_TRUE(
      right()
          .iwarp()
          .accept(w.right.node->events.front().connection, *there, right().default_params(), w.now)
          .ok());
  w.run_for(Duration::ms(10));
  const auto before = right().iwarp().qp_stats(*there).iwarp.tcp.segments_out;
  ASSERT_TRUE(w.right.node->post_receive(*there, {1, {}}, w.now));
  EXPECT_EQ(right().iwarp().qp_stats(*there).iwarp.tcp.segments_out, before);
}

}  // namespace
}  // namespace urnic::test
