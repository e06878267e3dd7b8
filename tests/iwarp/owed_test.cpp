// Actions that the engine must take by itself, without another event (E-51).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "net/arp.h"
#include "net/ethernet.h"
#include "net/icmp.h"
#include "net/ipv4.h"
#include "tests/iwarp/hand_wire.h"
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

Bytes who_has(const char* target, const MacAddress& mac, const char* sender) {
  const MacAddress everybody{{255, 255, 255, 255, 255, 255}};
  Bytes arp(net::kEthernetHeader + net::kArpPacket);
  net::emit_ethernet({everybody, mac, 0, net::kEtherTypeArp}, arp.data());
  net::ArpPacket a;
  a.operation = net::kArpRequest;
  a.sender_mac = mac;
  a.sender_ip = *IpAddress::parse(sender);
  a.target_ip = *IpAddress::parse(target);
  net::emit_arp(a, arp.data() + net::kEthernetHeader);
  return arp;
}

// proves: E-51
TEST_F(RxPath, OnlyTheLastSegmentOfTheAvailableDataIsPushed) {
  ASSERT_TRUE(p.up());
  const Bytes first = p.write(0, Bytes(100, 1));
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
      EXPECT_EQ(sent[i].seg.has(tcp::kPsh), i + 1 == sent.size()) << length << " bytes, " << i;
    }
    p.acknowledge(first.size());
  }
}

// A peer that sends before the consumer has answered finds a window that closes. With the answer
// there is room again, and the Reply announces it: the peer may have nothing with which to probe.
// proves: E-11, E-51
TEST_F(RxPath, TheReplyAnnouncesTheRoomAfterTheConsumersAnswer) {
  p.options.tcp.receive_buffer = 65535;
  Bytes write(14);  // empty; STag and offset have no meaning
  write[0] = 0xc1;
  write[1] = 0x40;
  const Bytes fpdu = make_fpdu(write);
  while (p.eager.size() < 60000) testing::append(p.eager, fpdu);
  ASSERT_TRUE(p.up());
  EXPECT_EQ(p.rcv_nxt(), p.eager.size());
  EXPECT_GT(p.reply_window, 60000u);
}

// The duplicate part of an overlap is reported on SLOW as on FAST (RFC 2883 4).
// proves: E-51
TEST_F(RxPath, ADuplicatePartIsReportedOnSlowToo_RFC2883) {
  p.options.tcp.dsack = true;
  up_slow();
  send(0);
  const auto a = p.send(0, joined({fpdus[0], fpdus[1]}));
  ASSERT_FALSE(a.empty());
  EXPECT_EQ(a.back().ack, 2 * kSize);
  ASSERT_EQ(a.back().sack.size(), 1u);
  EXPECT_EQ(a.back().sack[0], (std::pair<std::uint64_t, std::uint64_t>(0, kSize)));
}

// A copied request belongs to TCP from now on: the consumer need not wait for the peer.
// proves: E-23, E-51
TEST_F(RxPath, ACopiedRequestCompletesAsSoonAsItIsSent) {
  ASSERT_TRUE(p.up());
  const Bytes first = p.write(0, Bytes(100, 1));
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

// The accepting side probes a silent peer, like the connecting side.
// proves: E-43, E-51
TEST_F(RxPath, AnAcceptedConnectionSendsKeepaliveProbes) {
  p.options.keepalive_idle = Duration::s(3);
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) { c.keepalive = true; }));
  p.pass(Duration::ms(100));
  EXPECT_TRUE(p.pass(Duration::ms(2500)).empty());
  EXPECT_FALSE(p.pass(Duration::s(1)).empty());
}

// proves: E-51
TEST_F(RxPath, TimeWaitEndsByItself) {
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

// Every frame of a connection has the VLAN tag of its host's network.
// proves: E-48
TEST(Vlan, FramesOfConnectionsAreTagged) {
  sim::PairOptions o;
  o.left.vlan = o.right.vlan = 7;
  sim::Pair pair(o);
  EXPECT_TRUE(pair.connect(*pair.left().make_qp(), *pair.right().make_qp()));
}

// The consumer has more time to answer a request than the peer has.
// proves: E-51
TEST(Request, WaitsForItsConsumerLongerThanForItsPeer) {
  HandWire w;
  ASSERT_TRUE(w.right.engine().iwarp().listen(7000, 4));
  auto* qp = w.left.node->make_qp();
  ASSERT_TRUE(w.ask(*qp, Duration::s(60)));
  w.run_for(Duration::s(15));
  auto* there = w.right.node->make_qp();
  EXPECT_TRUE(w.accept(*there));
  EXPECT_TRUE(w.run_until([&] { return qp->state == verbs::QpState::Rts; }, Duration::s(1)));
}

// A responder's first FPDU may come in one segment with its Reply. It is delivered without further
// segments.
// proves: E-1, E-51
TEST(Reply, AnFpduInTheSameSegmentIsDeliveredAtOnce) {
  HandWire w;
  ASSERT_TRUE(w.right.engine().iwarp().listen(7000, 4));
  auto* qp = w.left.node->make_qp();
  std::vector<std::uint8_t> into(64);
  const auto key = w.left.node->register_memory(into.data(), into.size(), verbs::kLocalWrite);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(into.data()), 64, key};
  ASSERT_TRUE(w.left.node->post_receive(*qp, {1, {&sge, 1}}, w.now));
  ASSERT_TRUE(w.ask(*qp));
  bool sent = false;
  w.watch = [&](Bytes f, bool to_right) -> std::vector<Bytes> {
    const auto s = WireSegment::of(f);
    if (!s) return {std::move(f)};
    if (to_right || sent || s->seg.payload.size() < mpa::kFrameHeader) return {};
    sent = true;
    Bytes both(s->seg.payload.begin(), s->seg.payload.end());
    testing::append(both, HandPeer::send_message(1, Bytes(16, 7)));
    return {forge(*s, false, MacAddress::from_bytes(f.data()), s->seg, both)};
  };
  ASSERT_TRUE(w.right.engine()
                  .iwarp()
                  .accept(w.right.node->events.front().request.id, *w.right.node->make_qp(),
                          w.right.engine().iwarp().default_params(), w.now)
                  .ok());
  w.run_for(Duration::ms(1));
  ASSERT_TRUE(sent);
  EXPECT_EQ(qp->state, verbs::QpState::Rts);
  w.left.node->drain_completions();
  ASSERT_EQ(w.left.node->receive_done.size(), 1u);
  EXPECT_EQ(into[15], 7);
}

// No reply to ARP from one host says nothing about other hosts.
// proves: E-51
TEST(Hosts, AMissingHostEndsOnlyItsOwnConnections) {
  HandWire w;
  engine::Engine& left = w.left.engine();
  auto *one = w.left.node->make_qp(), *other = w.left.node->make_qp();
  ASSERT_TRUE(left.iwarp()
                  .connect(*one, *SocketAddress::parse("10.0.0.7:7000"),
                           left.iwarp().default_params(), w.now)
                  .ok());
  w.run_for(Duration::s(1));
  ASSERT_TRUE(left.iwarp()
                  .connect(*other, *SocketAddress::parse("10.0.0.8:7000"),
                           left.iwarp().default_params(), w.now)
                  .ok());
  ASSERT_TRUE(w.run_until([&] { return !w.left.node->events.empty(); }, Duration::s(10)));
  ASSERT_EQ(w.left.node->events.size(), 1u);
  EXPECT_EQ(w.left.node->events[0].qp, one);
  EXPECT_EQ(w.left.node->events[0].code, Errc::unreachable);
}

// An ICMP error for a closed port ends the connection attempt at once.
// proves: E-51
TEST(Hosts, AnIcmpErrorReachesTheConnectionItIsAbout) {
  HandWire w;
  constexpr std::size_t kIp = 20, kQuote = kIp + 8, kIcmp = 8;
  w.watch = [&](Bytes f, bool to_right) -> std::vector<Bytes> {
    const auto s = WireSegment::of(f);
    if (!to_right || !s) return {std::move(f)};
    Bytes e(net::kEthernetHeader + kIp + kIcmp + kQuote);
    net::emit_ethernet({s->net.src_mac, MacAddress{{2, 0, 0, 0, 0, 9}}, 0, net::kEtherTypeIpv4},
                       e.data());
    net::Ipv4Header ip;
    ip.total_len = static_cast<std::uint16_t>(e.size() - net::kEthernetHeader);
    ip.protocol = 1;
    ip.src = s->net.dst;
    ip.dst = s->net.src;
    std::uint8_t* const at = e.data() + net::kEthernetHeader;
    net::emit_ipv4(ip, at);
    at[kIp] = 3;      // unreachable:
    at[kIp + 1] = 3;  // port
    std::memcpy(at + kIp + kIcmp, f.data() + net::kEthernetHeader, kQuote);
    net::set_icmp_checksum({at + kIp, kIcmp + kQuote}, 0);
    w.send(e, false);
    return {};
  };
  engine::Engine& left = w.left.engine();
  auto* qp = w.left.node->make_qp();
  ASSERT_TRUE(left.iwarp()
                  .connect(*qp, *SocketAddress::parse("10.0.0.2:7000"),
                           left.iwarp().default_params(), w.now)
                  .ok());
  w.run_for(Duration::ms(100));
  ASSERT_EQ(w.left.node->events.size(), 1u);
  EXPECT_EQ(w.left.node->events[0].code, Errc::unreachable);
}

// The accepting side closes before the peer is ready to receive. The peer's RTR arrives, and then
// nothing more. It does not change how long the peer has to close its side.
// proves: E-50
TEST(Rtr, AfterOurCloseDoesNotChangeTheDeadlineOfTheEnd) {
  HandWire w;
  ASSERT_TRUE(w.right.engine().iwarp().listen(7000, 4));
  auto *here = w.left.node->make_qp(), *there = w.right.node->make_qp();
  ASSERT_TRUE(w.ask(*here));
  Bytes rtr;
  w.watch = [&](Bytes f, bool to_right) -> std::vector<Bytes> {
    const auto s = WireSegment::of(f);
    if (!s) return {std::move(f)};
    if (rtr.empty() && to_right && !s->seg.payload.empty()) rtr = f;
    return rtr.empty() ? std::vector<Bytes>{std::move(f)} : std::vector<Bytes>();
  };
  engine::Engine& right = w.right.engine();
  ASSERT_TRUE(w.accept(*there));
  w.run_for(Duration::ms(1));
  ASSERT_FALSE(rtr.empty());
  w.right.node->events.clear();
  right.iwarp().disconnect(*there, w.now);
  w.send(rtr, true);
  w.run_for(Duration::ms(1));
  ASSERT_EQ(w.right.node->events.size(), 1u);
  EXPECT_EQ(w.right.node->events[0].kind, engine::CmEvent::Kind::Established);
  w.run_for(Duration::s(12));
  EXPECT_EQ(right.tables().connections, 0u);
  EXPECT_EQ(there->state, verbs::QpState::Error);
}

// Our RST to a peer that rejected us finds the port full. The engine waits less long for that than
// for a reply.
// proves: E-50
TEST(Rejected, IsNotHeldByAFullPort) {
  HandWire w;
  ASSERT_TRUE(w.right.engine().iwarp().listen(7000, 4));
  engine::Engine& left = w.left.engine();
  auto* qp = w.left.node->make_qp();
  ASSERT_TRUE(w.ask(*qp, Duration::s(100)));
  Bytes reply;
  w.watch = [&](Bytes f, bool to_right) -> std::vector<Bytes> {
    const auto s = WireSegment::of(f);
    if (s && !to_right && !s->seg.payload.empty()) reply = f;
    return {};
  };
  w.right.engine().iwarp().reject(w.right.node->events.front().request.id, {}, w.now);
  w.run_for(Duration::us(100));
  ASSERT_FALSE(reply.empty());
  // The left host's frames, replies to ARP, are not fetched until its port is full.
  const auto poll = [&](Duration d) {
    w.now = w.now + d;
    left.poll(w.now);
  };
  for (int i = 0; i < 1100; ++i) {
    w.send(who_has("10.0.0.1", MacAddress{{2, 0, 0, 0, 0, 9}}, "10.0.0.9"), false);
    poll(Duration::us(1));
  }
  w.send(reply, false);
  poll(Duration::us(1));
  ASSERT_EQ(w.left.node->events.size(), 1u);
  EXPECT_EQ(w.left.node->events[0].code, Errc::rejected);
  ASSERT_EQ(left.tables().connections, 1u) << "the RST waits";
  for (int i = 0; i < 110; ++i) poll(Duration::ms(100));
  EXPECT_EQ(left.tables().connections, 0u);
}

// Two hosts with a connection. The test sees every frame between them.
struct Neighbours : ::testing::Test {
  void SetUp() override {
    ASSERT_TRUE(right().iwarp().listen(7000, 4));
    here = w.left.node->make_qp();
    ASSERT_TRUE(w.ask(*here));
    there = w.right.node->make_qp();
    ASSERT_TRUE(w.accept(*there));
    ASSERT_TRUE(w.run_until([&] { return there->state == verbs::QpState::Rts; }, Duration::s(1)));
    w.run_for(Duration::ms(10));
  }
  engine::Engine& left() { return w.left.engine(); }
  engine::Engine& right() { return w.right.engine(); }
  HandWire w;
  verbs::QueuePair *here = nullptr, *there = nullptr;
};

// The peer's address moves to another machine's MAC address, as in a failover: its connections
// follow.
// proves: E-51
TEST_F(Neighbours, AConnectionFollowsItsNeighbourToAnotherMac) {
  const MacAddress moved{{2, 0, 0, 0, 0, 0x77}};
  w.send(who_has("10.0.0.2", moved, "10.0.0.1"), true);
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

// A queue pair that starts again has not dropped anything yet: its first receive sends nothing to
// the peer.
// proves: E-17, E-51
TEST_F(Neighbours, AResetQueuePairForgetsThatItWaitedForAReceive) {
  verbs::SendWr wr;
  ASSERT_EQ(w.left.node->post_send(*here, wr, w.now), verbs::Post::Ok);
  w.run_for(Duration::us(100));
  ASSERT_TRUE(there->starved);
  for (auto* e : {&left(), &right()}) {
    auto& qp = e == &left() ? *here : *there;
    for (const auto to : {verbs::QpState::Error, verbs::QpState::Reset, verbs::QpState::Init}) {
      ASSERT_EQ(e->iwarp_control().move(qp, to, verbs::kQpAttrState, w.now), verbs::QpVerdict::Ok);
    }
  }
  w.run_for(Duration::ms(10));
  w.right.node->events.clear();
  ASSERT_TRUE(w.ask(*here));
  ASSERT_TRUE(w.accept(*there));
  w.run_for(Duration::ms(10));
  const auto before = right().iwarp().qp_stats(*there).iwarp.tcp.segments_out;
  ASSERT_TRUE(w.right.node->post_receive(*there, {1, {}}, w.now));
  EXPECT_EQ(right().iwarp().qp_stats(*there).iwarp.tcp.segments_out, before);
}

}  // namespace
}  // namespace urnic::test
