#include "net/interface.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "interface_fixture.h"
#include "net/ipv4.h"
#include "net/ipv6.h"
#include "support/random_bytes.h"

namespace urnic::net {
namespace {

using namespace urnic::test;
using EventKind = Event::Kind;
using ResKind = Resolution::Kind;

TEST(InterfaceConfig, WrongConfigurationsAreNamed) {
  const auto wrong = [](auto&& change) {
    InterfaceConfig c = config_a();
    change(c);
    return check(c);
  };
  EXPECT_EQ(wrong([](auto&) {}), "");
  EXPECT_NE(wrong([](auto& c) { c.addresses.clear(); }), "");
  EXPECT_NE(wrong([](auto& c) { c.mtu = 500; }), "");
  EXPECT_NE(wrong([](auto& c) { c.mtu = 1279; }), "");  // has a version 6 address
  EXPECT_NE(wrong([](auto& c) { c.vlan = 4095; }), "");
  EXPECT_NE(wrong([](auto& c) { c.mac = MacAddress::broadcast(); }), "");
  for (const char* bad : {"0.0.0.0/8", "224.0.0.1/24", "10.0.0.255/24", "10.0.0.0/24", "::/64",
                          "ff02::1/64", "::ffff:10.0.0.1/96"}) {
    EXPECT_NE(wrong([&](auto& c) { c.addresses = {prefix(bad)}; }), "") << bad;
  }
  EXPECT_EQ(wrong([](auto& c) { c.addresses = {prefix("10.0.0.0/31")}; }), "");
  EXPECT_NE(wrong([](auto& c) { c.routes = {{prefix("0.0.0.0/0"), ip("192.0.2.1")}}; }), "");
  EXPECT_NE(wrong([](auto& c) { c.routes = {{prefix("0.0.0.0/0"), ip("2001:db8::9")}}; }), "");
  EXPECT_EQ(wrong([](auto& c) { c.routes = {{prefix("0.0.0.0/0"), ip("10.0.0.254")}}; }), "");
  EXPECT_EQ(wrong([](auto& c) { c.routes = {{prefix("::/0"), ip("fe80::1")}}; }), "");
}

TEST(Interface, MacFollowsFromTheFirstAddressAndLinkLocalFromTheMac_E34) {
  InterfaceConfig c = config_a();
  c.link_local = true;
  const Interface i(c);
  EXPECT_EQ(i.mac(), kMacA);
  ASSERT_EQ(i.addresses().size(), 3u);
  EXPECT_EQ(i.addresses()[2].prefix.address, link_local_from_mac(kMacA));
  EXPECT_TRUE(i.is_own(ip("10.0.0.1")));
  EXPECT_FALSE(i.is_own(ip("10.0.0.2")));
}

TEST(Interface, AcceptsOnlyItsOwnMacVlanAndAddress) {
  InterfaceConfig c = config_a();
  const Interface plain(c);
  c.vlan = 42;
  const Interface tagged(c);
  const Bytes f4 = from_hex(kTcp4BtoA), f6 = from_hex(kTcp6BtoAVlan42);
  Classified c4 = classify(f4, static_cast<std::uint32_t>(f4.size()));
  const Classified c6 = classify(f6, static_cast<std::uint32_t>(f6.size()));
  EXPECT_TRUE(plain.accepts(c4));
  EXPECT_FALSE(plain.accepts(c6));
  EXPECT_TRUE(tagged.accepts(c6));
  EXPECT_FALSE(tagged.accepts(c4));
  c4.dst = ip("10.0.0.3");
  EXPECT_FALSE(plain.accepts(c4));
  c4.dst = ip("10.0.0.1");
  c4.dst_mac = kMacB;
  EXPECT_FALSE(plain.accepts(c4));
}

// ---- routing and resolution -----------------------------------------------------------------

TEST(InterfaceResolve, OwnAddressesLoopBack_E30) {
  Interface i(config_a());
  start(i, at(0));
  EXPECT_EQ(i.resolve(ip("10.0.0.1"), at(1)).kind, ResKind::Loopback);
  EXPECT_EQ(i.resolve(ip("2001:db8::1"), at(1)).kind, ResKind::Loopback);
  EXPECT_EQ(i.resolve(ip("10.0.0.1"), at(1)).mac, i.mac());
  EXPECT_TRUE(drain(i).empty());
}

TEST(InterfaceResolve, WhatHasNoUnicastNextHopIsUnreachable) {
  Interface i(config_a());
  start(i, at(0));
  for (const char* dst : {"0.0.0.0", "255.255.255.255", "224.0.0.1", "10.0.0.255", "10.0.0.0",
                          "192.0.2.1", "::", "ff02::1", "2001:db9::1"}) {
    EXPECT_EQ(i.resolve(ip(dst), at(1)).kind, ResKind::Unreachable) << dst;
  }
  EXPECT_TRUE(drain(i).empty());
}

TEST(InterfaceResolve, GoesThroughTheGatewayOfTheLongestPrefix) {
  InterfaceConfig c = config_a();
  c.routes = {{prefix("0.0.0.0/0"), ip("10.0.0.254")}, {prefix("192.0.2.0/24"), ip("10.0.0.253")}};
  Interface i(c);
  start(i, at(0));
  EXPECT_EQ(i.resolve(ip("198.51.100.1"), at(1)).next_hop, ip("10.0.0.254"));
  EXPECT_EQ(i.resolve(ip("192.0.2.1"), at(1)).next_hop, ip("10.0.0.253"));
  EXPECT_EQ(i.resolve(ip("10.0.0.9"), at(1)).next_hop, ip("10.0.0.9"));
  EXPECT_EQ(drain(i).size(), 3u);
}

TEST(InterfaceResolve, TwoInterfacesResolveEachOtherOverBothVersions) {
  Interface a(config_a()), b(config_b());
  start(a, at(0));
  start(b, at(0));
  for (const char* dst : {"10.0.0.2", "2001:db8::2"}) {
    EXPECT_EQ(a.resolve(ip(dst), at(1)).kind, ResKind::Pending);
    for (const Bytes& f : drain(a)) feed(b, f, at(2));
    for (const Bytes& f : drain(b)) feed(a, f, at(3));
    const auto ev = events(a);
    ASSERT_EQ(ev.size(), 1u);
    EXPECT_EQ(ev[0].kind, EventKind::NeighbourUsable);
    EXPECT_EQ(ev[0].address, ip(dst));
    EXPECT_EQ(ev[0].mac, kMacB);
    const Resolution r = a.resolve(ip(dst), at(4));
    EXPECT_EQ(r.kind, ResKind::Mac);
    EXPECT_EQ(r.mac, kMacB);
  }
  // B learned A from its questions and need not ask.
  EXPECT_EQ(b.resolve(ip("10.0.0.1"), at(5)).mac, kMacA);
  EXPECT_EQ(b.resolve(ip("2001:db8::1"), at(5)).mac, kMacA);
  EXPECT_TRUE(drain(b).empty());
}

TEST(InterfaceResolve, FailureBecomesAnEvent) {
  Interface a(config_a());
  start(a, at(0));
  a.resolve(ip("10.0.0.9"), at(10000));
  EXPECT_EQ(a.next_deadline(), at(11000));
  a.run_timers(at(13000));
  const auto ev = events(a);
  ASSERT_EQ(ev.size(), 1u);
  EXPECT_EQ(ev[0].kind, EventKind::NeighbourFailed);
  EXPECT_EQ(ev[0].address, ip("10.0.0.9"));
  EXPECT_EQ(a.resolve(ip("10.0.0.9"), at(13001)).kind, ResKind::Unreachable);
  EXPECT_EQ(drain(a).size(), 3u);
  EXPECT_EQ(a.counters().neighbours_failed, 1u);
  EXPECT_TRUE(a.next_deadline().is_never());
}

TEST(InterfaceResolve, ProbesGoToTheKnownMac) {
  Interface a(config_a()), b(config_b());
  start(a, at(0));
  start(b, at(0));
  for (const char* dst : {"10.0.0.2", "2001:db8::2"}) {
    a.resolve(ip(dst), at(0));
    for (const Bytes& f : drain(a)) feed(b, f, at(0));
    for (const Bytes& f : drain(b)) feed(a, f, at(0));
    events(a);
    a.doubt(ip(dst), at(100));
    const auto probe = drain(a);
    ASSERT_EQ(probe.size(), 1u);
    EXPECT_EQ(MacAddress::from_bytes(probe[0].data()), kMacB);
    feed(b, probe[0], at(101));
    for (const Bytes& f : drain(b)) feed(a, f, at(102));
    EXPECT_EQ(a.neighbours().state(ip(dst), at(102)), NeighbourState::Reachable);
    EXPECT_TRUE(events(a).empty());
  }
}

TEST(InterfaceSource, PrefersSameScopeAndThePrefixAroundTheNextHop_RFC6724) {
  InterfaceConfig c;
  c.addresses = {prefix("10.0.0.1/24"), prefix("192.168.7.1/24"), prefix("2001:db8::1/64"),
                 prefix("2001:db8:5::1/64")};
  c.routes = {{prefix("0.0.0.0/0"), ip("192.168.7.254")}, {prefix("::/0"), ip("fe80::9")}};
  const Interface i(c);
  EXPECT_EQ(i.choose_source(ip("10.0.0.77")), ip("10.0.0.1"));
  EXPECT_EQ(i.choose_source(ip("192.168.7.3")), ip("192.168.7.1"));
  EXPECT_EQ(i.choose_source(ip("203.0.113.5")), ip("192.168.7.1"));  // by its gateway
  EXPECT_EQ(i.choose_source(ip("10.0.0.1")), ip("10.0.0.1"));
  EXPECT_EQ(i.choose_source(ip("2001:db8:5::9")), ip("2001:db8:5::1"));
  EXPECT_EQ(i.choose_source(ip("2001:db8:4::9")), ip("2001:db8:5::1"));  // longest match
  EXPECT_EQ(i.choose_source(ip("fe80::77")), link_local_from_mac(i.mac()));
  InterfaceConfig only4 = config_a();
  only4.addresses = {prefix("10.0.0.1/24")};
  EXPECT_EQ(Interface(only4).choose_source(ip("2001:db8::9")), std::nullopt);
}

// ---- ARP ------------------------------------------------------------------------------------

TEST(InterfaceArp, AnswersAndAsksWithGoldenBytes_RFC826) {
  Interface a(config_a()), b(config_b());
  start(a, at(0));
  start(b, at(0));
  b.resolve(ip("10.0.0.1"), at(1));
  EXPECT_EQ(drain_hex(b), std::vector<std::string>{kArpRequestBtoA});
  feed(a, kArpRequestBtoA, at(1));
  EXPECT_EQ(drain_hex(a), std::vector<std::string>{kArpReplyAtoB});
}

TEST(InterfaceArp, PaddedFramesAreFine) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kArpRequestBtoA);
  f.resize(60);
  feed(a, f, at(1));
  EXPECT_EQ(drain(a).size(), 1u);
}

TEST(InterfaceArp, QuestionsForOthersAreIgnoredAndTeachNothing) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kArpRequestBtoA);
  f[41] = 7;  // who has 10.0.0.7?
  feed(a, f, at(1));
  EXPECT_TRUE(drain(a).empty());
  EXPECT_EQ(a.neighbours().size(), 0u);
}

TEST(InterfaceArp, UnaskedRepliesAndAnnouncementsDoNotPoison) {
  Interface b(config_b());
  start(b, at(0));
  feed(b, kArpReplyAtoB, at(1));
  feed(b, kArpAnnounceA, at(2));
  EXPECT_EQ(b.neighbours().size(), 0u);
  EXPECT_EQ(b.counters().unsolicited_ignored, 2u);
}

TEST(InterfaceArp, AnAnnouncementMovesAnExistingEntry_RFC826) {
  Interface b(config_b());
  start(b, at(0));
  feed(b, kArpReplyAtoB, at(1));
  b.resolve(ip("10.0.0.1"), at(2));
  feed(b, kArpReplyAtoB, at(3));
  events(b);
  Bytes moved = from_hex(kArpAnnounceA);
  moved[11] = moved[27] = 0x77;
  feed(b, moved, at(4));
  const auto ev = events(b);
  ASSERT_EQ(ev.size(), 1u);
  EXPECT_EQ(ev[0].kind, EventKind::NeighbourUsable);
  EXPECT_EQ(ev[0].mac.bytes[5], 0x77);
  EXPECT_EQ(b.neighbours().state(ip("10.0.0.1"), at(4)), NeighbourState::Stale);
  EXPECT_EQ(b.counters().neighbours_changed, 1u);
}

TEST(InterfaceArp, OffLinkSendersTeachNothingButAreAnswered) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kArpRequestBtoA);
  store_be32(&f[28], 0xc0000201);  // 192.0.2.1
  feed(a, f, at(1));
  EXPECT_EQ(drain(a).size(), 1u);
  EXPECT_EQ(a.neighbours().size(), 0u);
}

TEST(InterfaceArp, GroupMacsAreRefused) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kArpRequestBtoA);
  f[22] = 0xff;  // sender hardware address
  feed(a, f, at(1));
  EXPECT_EQ(a.counters().arp_bad, 1u);
  f = from_hex(kArpRequestBtoA);
  f[6] = 0x01;  // Ethernet source
  feed(a, f, at(1));
  EXPECT_EQ(a.counters().dropped_by(DropReason::NotForUs), 1u);
  EXPECT_TRUE(drain(a).empty());
}

TEST(InterfaceArp, OtherVlanIsNotHeard) {
  InterfaceConfig c = config_a();
  c.vlan = 7;
  Interface a(c);
  start(a, at(0));
  feed(a, kArpRequestBtoA, at(1));
  EXPECT_TRUE(drain(a).empty());
  Bytes tagged = from_hex(kArpRequestBtoA);
  const Bytes tag = {0x81, 0, 0, 7};
  tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());
  feed(a, tagged, at(1));
  const auto out = drain(a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(parse_ethernet(out[0])->header.vlan, 7);
}

// ---- duplicate addresses --------------------------------------------------------------------

InterfaceConfig with_detection() {
  InterfaceConfig c = config_a();
  c.duplicate_detection = true;
  return c;
}

TEST(InterfaceDad, ProbesThenAnnouncesThenUses_RFC5227) {
  InterfaceConfig c = with_detection();
  c.addresses = {prefix("10.0.0.1/24")};
  Interface a(c);
  a.link_up(at(0));
  EXPECT_FALSE(a.is_own(ip("10.0.0.1")));
  EXPECT_FALSE(a.choose_source(ip("10.0.0.2")));
  std::vector<std::string> sent;
  std::vector<std::int64_t> when;
  for (int ms = 0; ms < 20000; ++ms) {
    a.run_timers(at(ms));
    for (const auto& f : drain_hex(a)) {
      sent.push_back(f);
      when.push_back(ms);
    }
  }
  ASSERT_EQ(sent, (std::vector<std::string>{kArpProbeA, kArpProbeA, kArpProbeA, kArpAnnounceA,
                                            kArpAnnounceA}));
  EXPECT_LE(when[0], 1000);
  for (int k = 1; k < 3; ++k) {
    EXPECT_GE(when[k] - when[k - 1], 999);
    EXPECT_LE(when[k] - when[k - 1], 2001);
  }
  EXPECT_NEAR(static_cast<double>(when[3] - when[2]), 2000, 1);
  EXPECT_NEAR(static_cast<double>(when[4] - when[3]), 2000, 1);
  EXPECT_TRUE(a.is_own(ip("10.0.0.1")));
  EXPECT_EQ(count(events(a), EventKind::AddressUsable), 1u);
  EXPECT_TRUE(a.next_deadline().is_never());
}

TEST(InterfaceDad, AnAnswerToAProbeMakesTheAddressDuplicate_RFC5227) {
  Interface a(with_detection());
  a.link_up(at(0));
  a.run_timers(at(1000));
  Bytes taken = from_hex(kArpReplyAtoB);  // "10.0.0.1 is at ..." from somebody else
  taken[11] = taken[27] = 0x55;
  store_be32(&taken[38], 0);
  std::copy(kMacA.bytes.begin(), kMacA.bytes.end(), taken.begin());
  feed(a, taken, at(1001));
  a.run_timers(at(60000));
  EXPECT_FALSE(a.is_own(ip("10.0.0.1")));
  EXPECT_TRUE(a.is_own(ip("2001:db8::1")));
  const auto ev = events(a);
  ASSERT_EQ(count(ev, EventKind::AddressDuplicate), 1u);
  EXPECT_EQ(a.counters().address_conflicts, 1u);
  drain(a);
  feed(a, kArpRequestBtoA, at(60001));  // not defended, not answered
  EXPECT_TRUE(drain(a).empty());
  // Another network, another chance.
  a.link_down();
  a.link_up(at(70000));
  a.run_timers(at(90000));
  EXPECT_TRUE(a.is_own(ip("10.0.0.1")));
}

TEST(InterfaceDad, TwoHostsThatProbeAtOnceBothSeeTheConflict_RFC5227) {
  Interface a(with_detection());
  a.link_up(at(0));
  Bytes probe = from_hex(kArpProbeA);
  probe[11] = probe[27] = 0x55;
  feed(a, probe, at(1));
  EXPECT_EQ(count(events(a), EventKind::AddressDuplicate), 1u);
  // Our own probe, reflected by the wire, is no conflict.
  Interface b(with_detection());
  b.link_up(at(0));
  feed(b, kArpProbeA, at(1));
  EXPECT_EQ(count(events(b), EventKind::AddressDuplicate), 0u);
}

TEST(InterfaceDad, DetectionOverVersion6_RFC4862) {
  InterfaceConfig c = with_detection();
  c.addresses = {prefix("2001:db8::1/64")};
  c.mac = kMacA;
  Interface a(c);
  a.link_up(at(0));
  std::vector<std::string> sent;
  for (int ms = 0; ms < 10000; ms += 10) {
    a.run_timers(at(ms));
    for (const auto& f : drain_hex(a)) sent.push_back(f);
  }
  EXPECT_EQ(std::count(sent.begin(), sent.end(), kDetectionA), 1);
  EXPECT_EQ(std::count(sent.begin(), sent.end(), kListenerReportA), 2);
  EXPECT_EQ(std::count(sent.begin(), sent.end(), kAdvertUnsolicitedA), 2);
  EXPECT_EQ(sent.size(), 5u);
  EXPECT_TRUE(a.is_own(ip("2001:db8::1")));
}

TEST(InterfaceDad, Version6ConflictsByAdvertisementAndByDetection_RFC4862) {
  for (const char* hex : {kAdvertUnsolicitedA, kDetectionA}) {
    InterfaceConfig c = with_detection();
    c.mac = kMacB;  // so that the golden frames come from somebody else
    Interface i(c);
    i.link_up(at(0));
    feed(i, hex, at(1));
    const auto ev = events(i);
    ASSERT_EQ(count(ev, EventKind::AddressDuplicate), 1u);
    i.run_timers(at(20000));
    EXPECT_FALSE(i.is_own(ip("2001:db8::1")));
  }
  // An ordinary question for a tentative address is neither answered nor a conflict.
  Interface i(with_detection());
  i.link_up(at(0));
  drain(i);
  feed(i, kSolicitBtoA, at(1));
  EXPECT_TRUE(drain(i).empty());
  EXPECT_EQ(count(events(i), EventKind::AddressDuplicate), 0u);
}

TEST(InterfaceDad, UsableAddressesAreDefendedOncePerInterval_RFC5227) {
  InterfaceConfig c = config_a();
  c.mac = kMacB;
  Interface i(c);
  start(i, at(0));
  for (int ms = 10000; ms < 19000; ms += 100) feed(i, kArpAnnounceA, at(ms));
  EXPECT_EQ(drain(i).size(), 1u);
  EXPECT_TRUE(i.is_own(ip("10.0.0.1")));
  EXPECT_EQ(count(events(i), EventKind::AddressConflict), 1u);
  feed(i, kArpAnnounceA, at(20001));
  EXPECT_EQ(drain(i).size(), 1u);
  feed(i, kAdvertUnsolicitedA, at(40000));
  EXPECT_EQ(drain(i).size(), 1u);
  EXPECT_EQ(i.counters().address_defences, 3u);
}

TEST(InterfaceLink, ComingUpAnnouncesAndAsksForARecheck) {
  InterfaceConfig c = config_a();
  c.addresses = {prefix("10.0.0.1/24")};
  Interface a(c);
  EXPECT_EQ(a.resolve(ip("10.0.0.2"), at(0)).kind, ResKind::Pending);
  EXPECT_TRUE(drain(a).empty());  // down: nothing goes out, nothing fails
  a.run_timers(at(60000));
  EXPECT_TRUE(events(a).empty());
  a.link_up(at(60000));
  const auto out = drain_hex(a);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(std::count(out.begin(), out.end(), kArpAnnounceA), 1);  // gratuitous ARP
  EXPECT_EQ(count(events(a), EventKind::Recheck), 1u);
  a.link_down();
  EXPECT_TRUE(a.next_deadline().is_never());
}

// ---- ICMP -----------------------------------------------------------------------------------

TEST(InterfaceIcmp, EchoIsAnsweredWithGoldenBytes) {
  Interface a(config_a());
  start(a, at(0));
  feed(a, kEcho4RequestBtoA, at(1));
  EXPECT_EQ(drain_hex(a), std::vector<std::string>{kEcho4ReplyAtoB});
  feed(a, kEcho6RequestBtoA, at(1));
  EXPECT_EQ(drain_hex(a), std::vector<std::string>{kEcho6ReplyAtoB});
  EXPECT_EQ(a.counters().echo_replies, 2u);
}

TEST(InterfaceIcmp, EchoRepliesAreRateLimited) {
  Interface a(config_a());
  start(a, at(0));
  for (int i = 0; i < 200; ++i) {
    feed(a, kEcho4RequestBtoA, at(10000));
    drain(a);
  }
  EXPECT_EQ(a.counters().echo_replies, 50u);
  EXPECT_EQ(a.counters().echo_rate_limited, 150u);
  feed(a, kEcho4RequestBtoA, at(10010));
  EXPECT_EQ(drain(a).size(), 1u);
}

TEST(InterfaceIcmp, BadChecksumsGroupsAndStrangersAreNotAnswered) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kEcho4RequestBtoA);
  f.back() ^= 1;
  feed(a, f, at(1));
  EXPECT_EQ(a.counters().icmp_bad, 1u);
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

TEST(InterfaceIcmp, FramesOfferedInPartAreDropped) {
  Interface a(config_a());
  start(a, at(0));
  const Bytes f = from_hex(kEcho4RequestBtoA);
  const auto c = classify(f, static_cast<std::uint32_t>(f.size()));
  for (std::size_t n = 0; n < f.size(); ++n) a.input(c, ByteView(f).first(n), at(1));
  EXPECT_TRUE(drain(a).empty());
  EXPECT_EQ(a.counters().dropped_by(DropReason::Short), f.size());
}

TEST(InterfaceIcmp, PacketTooBigBecomesAnEventForTcpToJudge_E18) {
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
  EXPECT_EQ(a.counters().icmp_errors, 2u);
}

TEST(InterfaceIcmp, ErrorsThatQuoteSomebodyElseAreRefused) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kFragNeededToA);
  f[34 + 8 + 15] = 9;  // the quoted source is 10.0.0.9
  set_icmp_checksum(MutBytes(f).subspan(34), 0);
  feed(a, f, at(1));
  EXPECT_TRUE(events(a).empty());
  EXPECT_EQ(a.counters().icmp_errors_unusable, 1u);
}

TEST(InterfaceIcmp, AFloodOfErrorsEndsInOneRecheck) {
  Interface a(config_a());
  start(a, at(0));
  for (int i = 0; i < 5000; ++i) feed(a, kFragNeededToA, at(1));
  const auto ev = events(a);
  EXPECT_LE(ev.size(), 1025u);
  EXPECT_EQ(ev.back().kind, EventKind::Recheck);
  EXPECT_EQ(count(ev, EventKind::Recheck), 1u);
  EXPECT_GT(a.counters().events_lost, 3000u);
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

TEST(InterfaceNd, OnlyHopLimit255IsBelieved_RFC4861) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kSolicitBtoA);
  f[14 + 7] = 254;
  feed(a, f, at(1));
  EXPECT_TRUE(drain(a).empty());
  EXPECT_EQ(a.counters().nd_bad, 1u);
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

TEST(InterfaceNd, UnaskedAdvertisementsCreateNothing) {
  Interface b(config_b());
  start(b, at(0));
  feed(b, kAdvertAtoB, at(1));
  feed(b, kAdvertUnsolicitedA, at(1));
  EXPECT_EQ(b.neighbours().size(), 0u);
  EXPECT_EQ(b.counters().unsolicited_ignored, 2u);
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
  EXPECT_EQ(a.routes().all().size(), 2u);
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
  // From beyond the link: not believed.
  feed(a, icmp6_frame("2001:db8::2", "ff02::1", multicast_mac(all_nodes()), 64, query), at(61000));
  EXPECT_TRUE(a.next_deadline().is_never());
}

// ---- hostile input --------------------------------------------------------------------------

// Mutated control traffic: no crash, and every bound holds.
TEST(InterfaceHostile, RandomFramesAreHandledWithinBounds) {
  constexpr std::uint64_t kSeed = 21;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  InterfaceConfig c = config_a();
  c.duplicate_detection = true;
  c.neighbour_limit = 64;
  c.icmp_per_second = 100000;
  Interface i(c);
  i.link_up(at(0));
  std::vector<Bytes> seeds;
  for (const char* hex :
       {kArpRequestBtoA, kArpReplyAtoB, kArpAnnounceA, kEcho4RequestBtoA, kEcho6RequestBtoA,
        kSolicitBtoA, kAdvertAtoB, kAdvertUnsolicitedA, kDetectionA, kListenerReportA,
        kFragNeededToA, kPacketTooBigToA, kTcp4BtoA}) {
    seeds.push_back(from_hex(hex));
  }
  std::uint8_t out[2048];
  for (int n = 0; n < 100000; ++n) {
    Bytes f = rng.chance(0.05) ? random_bytes(rng, rng.below(128)) : seeds[rng.below(seeds.size())];
    if (rng.chance(0.7)) f = mutate(rng, f);
    // Mostly repair the checksums, or nothing would get past them.
    if (f.size() > 34 && f[12] == 8 && f[13] == 0 && f[14] == 0x45) {
      store_be16(&f[24], 0);
      store_be16(&f[24], inet_checksum(ipv4_header_sum(&f[14], 20)));
      if (f[23] == kProtoIcmp && f.size() >= 38) set_icmp_checksum(MutBytes(f).subspan(34), 0);
    } else if (f.size() >= 58 && f[12] == 0x86 && f[20] == kProtoIcmpv6) {
      set_icmp_checksum(
          MutBytes(f).subspan(54),
          pseudo_sum_v6(&f[22], kProtoIcmpv6, static_cast<std::uint32_t>(f.size() - 54)));
    }
    f.shrink_to_fit();
    const Instant now = at(n * 3);
    feed(i, f, now);
    if (rng.chance(0.1)) {
      i.resolve(IpAddress::v4(0x0a000000 + static_cast<std::uint32_t>(rng.below(256))), now);
    }
    i.run_timers(now);
    ASSERT_LE(i.neighbours().size(), 64u);
    ASSERT_GT(i.next_deadline(), now);
    while (i.output_size() != 0) ASSERT_LE(i.next_output(out), 1518u);
    if (rng.chance(0.01)) {
      ASSERT_LE(events(i).size(), 1025u);
    }
    if (rng.chance(0.0005)) {
      i.link_down();
      i.link_up(now);
    }
  }
  EXPECT_GT(i.counters().arp_rx, 5000u);
  EXPECT_GT(i.counters().nd_rx, 5000u);
  EXPECT_GT(i.counters().echo_replies, 500u);
  EXPECT_GT(i.counters().icmp_errors, 500u);
}

TEST(InterfaceOutput, IsBounded) {
  InterfaceConfig c = config_a();
  c.output_bytes = 4096;
  Interface a(c);
  start(a, at(0));
  for (int i = 0; i < 1000; ++i) feed(a, kArpRequestBtoA, at(1));
  EXPECT_LE(drain(a).size(), 100u);
  EXPECT_GT(a.counters().output_full, 800u);
  feed(a, kArpRequestBtoA, at(2));
  EXPECT_EQ(drain(a).size(), 1u);
}

}  // namespace
}  // namespace urnic::net
