// ICMP and ICMPv6 of an interface: echo, errors, neighbour discovery (RFC 4861).
#include <gtest/gtest.h>

#include "interface_fixture.h"
#include "net/interface.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::net {
namespace {

using namespace urnic::test;
using EventKind = Event::Kind;
using ResKind = Resolution::Kind;

// ---- ICMP -----------------------------------------------------------------------------------

TEST(InterfaceIcmp, EchoIsAnsweredWithGoldenBytes) {
  Interface a(config_a());
  start(a, at(0));
  feed(a, kEcho4RequestBtoA, at(1));
  EXPECT_EQ(drain_hex(a), std::vector<std::string>{kEcho4ReplyAtoB});
  feed(a, kEcho6RequestBtoA, at(1));
  EXPECT_EQ(drain_hex(a), std::vector<std::string>{kEcho6ReplyAtoB});
  EXPECT_EQ(a.counters().icmp.echo_replies, 2u);
}

TEST(InterfaceIcmp, EchoRepliesAreRateLimited) {
  Interface a(config_a());
  start(a, at(0));
  for (int i = 0; i < 200; ++i) {
    feed(a, kEcho4RequestBtoA, at(10000));
    drain(a);
  }
  EXPECT_EQ(a.counters().icmp.echo_replies, 50u);
  EXPECT_EQ(a.counters().icmp.echo_rate_limited, 150u);
  feed(a, kEcho4RequestBtoA, at(10010));
  EXPECT_EQ(drain(a).size(), 1u);
}

TEST(InterfaceIcmp, BadChecksumsGroupsAndStrangersAreNotAnswered) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kEcho4RequestBtoA);
  f.back() ^= 1;
  feed(a, f, at(1));
  EXPECT_EQ(a.counters().icmp.bad, 1u);
  f = from_hex(kEcho4RequestBtoA);
  std::fill(f.begin(), f.begin() + 6, 0xff);  // broadcast frame, unicast datagram
  feed(a, f, at(1));
  f = from_hex(kEcho4RequestBtoA);
  f[33] = 9;  // to 10.0.0.9
  store_be16(&f[24], 0);
  store_be16(&f[24], inet_checksum(ipv4_header_sum(&f[14], 20)));
  feed(a, f, at(1));
  EXPECT_EQ(a.counters().dropped_by(DropReason::NotForUs), 2u);
  EXPECT_TRUE(drain(a).empty());
}

TEST(InterfaceIcmp, PartialFramesAreDropped) {
  Interface a(config_a());
  start(a, at(0));
  const Bytes f = from_hex(kEcho4RequestBtoA);
  const auto c = classify(f, static_cast<std::uint32_t>(f.size()));
  for (std::size_t n = 0; n < f.size(); ++n) a.input(c, ByteView(f).first(n), at(1));
  EXPECT_TRUE(drain(a).empty());
  EXPECT_EQ(a.counters().dropped_by(DropReason::Short), f.size());
}

// proves: E-18
TEST(InterfaceIcmp, PacketTooBigBecomesAnEventForTcpToJudge) {
  Interface a(config_a());
  start(a, at(0));
  feed(a, kFragNeededToA, at(1));
  feed(a, kPacketTooBigToA, at(1));
  const auto ev = events(a);
  ASSERT_EQ(ev.size(), 2u);
  for (const Event& e : ev) {
    EXPECT_EQ(e.kind, EventKind::Icmp);
    EXPECT_EQ(e.icmp.kind, IcmpError::Kind::PacketTooBig);
    EXPECT_EQ(e.icmp.mtu, 1400u);
    EXPECT_EQ(e.icmp.local.port, 4420);
    EXPECT_EQ(e.icmp.seq, 0xdeadbeefu);
  }
  EXPECT_EQ(a.counters().icmp.errors, 2u);
}

TEST(InterfaceIcmp, ErrorsThatQuoteOtherHostsAreRejected) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kFragNeededToA);
  f[34 + 8 + 15] = 9;  // the quoted source is 10.0.0.9
  set_icmp_checksum(MutBytes(f).subspan(34), 0);
  feed(a, f, at(1));
  EXPECT_TRUE(events(a).empty());
  EXPECT_EQ(a.counters().icmp.errors_unusable, 1u);
}

TEST(InterfaceIcmp, AFloodOfErrorsEndsInOneRecheck) {
  Interface a(config_a());
  start(a, at(0));
  for (int i = 0; i < 5000; ++i) feed(a, kFragNeededToA, at(1));
  const auto ev = events(a);
  EXPECT_LE(ev.size(), 1025u);
  EXPECT_EQ(ev.back().kind, EventKind::Recheck);
  EXPECT_EQ(count_of(ev, EventKind::Recheck), 1u);
  EXPECT_GT(a.counters().events_lost, 3000u);
  feed(a, kFragNeededToA, at(2));
  const auto later = events(a);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_NE(later[0].kind, EventKind::Recheck);
}

// ---- neighbour discovery ---------------------------------------------------------------------

TEST(InterfaceNd, SolicitsAndAdvertisesWithGoldenBytes_RFC4861) {
  Interface a(config_a()), b(config_b());
  start(a, at(0));
  start(b, at(0));
  b.resolve(ip("2001:db8::1"), at(1));
  EXPECT_EQ(drain_hex(b), std::vector<std::string>{kSolicitBtoA});
  feed(a, kSolicitBtoA, at(1));
  EXPECT_EQ(drain_hex(a), std::vector<std::string>{kAdvertAtoB});
  EXPECT_EQ(a.neighbours().state(ip("2001:db8::2"), at(1)), NeighbourState::Stale);
}

TEST(InterfaceNd, OnlyHopLimit255IsAccepted_RFC4861) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kSolicitBtoA);
  f[14 + 7] = 254;
  feed(a, f, at(1));
  EXPECT_TRUE(drain(a).empty());
  EXPECT_EQ(a.counters().nd.bad, 1u);
  EXPECT_EQ(a.neighbours().size(), 0u);
}

TEST(InterfaceNd, DetectionByAnotherHostIsAnsweredToAll_RFC4861_7_2_4) {
  InterfaceConfig c = config_a();
  c.mac = kMacB;
  Interface i(c);
  start(i, at(0));
  feed(i, kDetectionA, at(1));
  const auto out = drain(i);
  ASSERT_EQ(out.size(), 1u);
  const Classified k = classify(out[0], static_cast<std::uint32_t>(out[0].size()));
  EXPECT_EQ(k.dst, all_nodes());
  const auto m = parse_nd(ByteView(out[0]).subspan(k.l4_offset));
  ASSERT_TRUE(m);
  EXPECT_FALSE(m->solicited);
  EXPECT_TRUE(m->override_entry);
}

TEST(InterfaceNd, UnsolicitedAdvertisementsCreateNoEntry) {
  Interface b(config_b());
  start(b, at(0));
  feed(b, kAdvertAtoB, at(1));
  feed(b, kAdvertUnsolicitedA, at(1));
  EXPECT_EQ(b.neighbours().size(), 0u);
  EXPECT_EQ(b.counters().neighbours.unsolicited_ignored, 2u);
}

Bytes icmp6_frame(const char* src, const char* dst, const MacAddress& to, std::uint8_t hops,
                  Bytes message) {
  Bytes f(54 + message.size());
  emit_ethernet({to, kMacB, 0, kEtherTypeIpv6}, f.data());
  emit_ipv6(
      {0, 0, static_cast<std::uint16_t>(message.size()), kProtoIcmpv6, hops, ip(src), ip(dst)},
      &f[14]);
  set_icmp_checksum(
      message, pseudo_sum_v6(&f[22], kProtoIcmpv6, static_cast<std::uint32_t>(message.size())));
  std::copy(message.begin(), message.end(), f.begin() + 54);
  return f;
}

TEST(InterfaceNd, RouterAdvertisementsAndRedirectsAreCountedAndIgnored) {
  Interface a(config_a());
  start(a, at(0));
  Bytes ra(16);
  ra[0] = kIcmp6RouterAdvertisement;
  feed(a, icmp6_frame("fe80::2", "ff02::1", multicast_mac(all_nodes()), 255, ra), at(1));
  Bytes redirect(40);
  redirect[0] = kIcmp6Redirect;
  feed(a, icmp6_frame("fe80::2", "2001:db8::1", kMacA, 255, redirect), at(1));
  EXPECT_EQ(a.counters().router_advertisements_ignored, 1u);
  EXPECT_EQ(a.counters().redirects_ignored, 1u);
  EXPECT_FALSE(a.has_route(ip("2001:db9::1"))) << "no router was learnt of";
  EXPECT_TRUE(drain(a).empty());
}

TEST(InterfaceNd, EchoToAllNodesIsAnsweredFromAUnicastAddress_RFC4443) {
  Interface a(config_a());
  start(a, at(0));
  Bytes ping(12);
  ping[0] = kIcmp6EchoRequest;
  feed(a, icmp6_frame("2001:db8::2", "ff02::1", multicast_mac(all_nodes()), 64, ping), at(1));
  const auto out = drain(a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(load_ipv6(&out[0][22]), ip("2001:db8::1"));
}

TEST(InterfaceNd, ListenerQueriesAreAnsweredWithinTheAllowedDelay_RFC3810) {
  Interface a(config_a());
  start(a, at(0));
  Bytes query(28);
  query[0] = kIcmp6MldQuery;
  store_be16(&query[4], 500);
  feed(a, icmp6_frame("fe80::2", "ff02::1", multicast_mac(all_nodes()), 1, query), at(10000));
  EXPECT_LE(a.next_deadline(), at(10500));
  a.run_timers(at(10500));
  const auto out = drain(a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0][62], 143);
  a.run_timers(at(60000));
  EXPECT_TRUE(drain(a).empty());
  // From another link: not accepted.
  feed(a, icmp6_frame("2001:db8::2", "ff02::1", multicast_mac(all_nodes()), 64, query), at(61000));
  EXPECT_TRUE(a.next_deadline().is_never());
}

}  // namespace
}  // namespace urnic::net
