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

TEST(InterfaceConfig, InvalidConfigurationsGiveAnError) {
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

TEST(Interface, MacFollowsFromTheFirstAddressAndLinkLocalFromTheMac) {
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

// proves: E-30
TEST(InterfaceResolve, OwnAddressesLoopBack) {
  Interface i(config_a());
  start(i, at(0));
  EXPECT_EQ(i.resolve(ip("10.0.0.1"), at(1)).kind, ResKind::Loopback);
  EXPECT_EQ(i.resolve(ip("2001:db8::1"), at(1)).kind, ResKind::Loopback);
  EXPECT_EQ(i.resolve(ip("10.0.0.1"), at(1)).mac, i.mac());
  EXPECT_TRUE(drain(i).empty());
}

TEST(InterfaceResolve, DestinationsWithoutAUnicastNextHopAreUnreachable) {
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
  // B learned A from its requests and need not ask.
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
  EXPECT_EQ(a.counters().neighbours.failed, 1u);
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
  EXPECT_EQ(i.choose_source(ip("203.0.113.5")), ip("192.168.7.1"));  // selected by its gateway
  EXPECT_EQ(i.choose_source(ip("10.0.0.1")), ip("10.0.0.1"));
  EXPECT_EQ(i.choose_source(ip("2001:db8:5::9")), ip("2001:db8:5::1"));
  EXPECT_EQ(i.choose_source(ip("2001:db8:4::9")), ip("2001:db8:5::1"));  // longest match
  EXPECT_EQ(i.choose_source(ip("fe80::77")), link_local_from_mac(i.mac()));
  InterfaceConfig only4 = config_a();
  only4.addresses = {prefix("10.0.0.1/24")};
  EXPECT_EQ(Interface(only4).choose_source(ip("2001:db8::9")), std::nullopt);
}

TEST(InterfaceSource, LoopbackSourcesAreUsedOnlyForLoopback) {
  InterfaceConfig c;
  c.addresses = {prefix("127.0.0.1/32"), prefix("192.168.7.1/32")};
  c.link_local = false;
  const Interface i(c);
  EXPECT_EQ(i.choose_source(ip("127.0.0.2")), ip("127.0.0.1"));
  EXPECT_EQ(i.choose_source(ip("10.1.1.1")), ip("192.168.7.1"));
  EXPECT_EQ(i.choose_source(ip("100.1.1.1")), ip("192.168.7.1"));
}

// A link that ends in a socket of the kernel.
TEST(InterfaceResolve, AllHostsAreReachedThroughTheOnlyNeighbourWithoutArp) {
  InterfaceConfig c;
  c.addresses = {prefix("127.0.0.1/32"), prefix("192.168.7.1/32")};
  c.link_local = false;
  c.only_neighbour = kMacB;
  Interface i(c);
  i.link_up(at(0));
  EXPECT_EQ(i.next_deadline(), Instant::never());
  for (const char* dst : {"127.0.0.2", "192.168.7.2", "203.0.113.5"}) {
    const auto r = i.resolve(ip(dst), at(1));
    EXPECT_EQ(r.kind, ResKind::Mac) << dst;
    EXPECT_EQ(r.mac, kMacB);
    EXPECT_TRUE(i.may_send(ip(dst))) << dst;
  }
  EXPECT_EQ(i.resolve(ip("192.168.7.1"), at(1)).kind, ResKind::Loopback);
  EXPECT_FALSE(i.may_send(ip("192.168.7.1")));
  for (const char* dst : {"0.0.0.0", "224.0.0.1", "fd77::1"}) {
    EXPECT_EQ(i.resolve(ip(dst), at(1)).kind, ResKind::Unreachable) << dst;
  }
  EXPECT_TRUE(drain(i).empty());
}

// The kernel's addresses have changed since the link was opened.
TEST(InterfaceSource, WithAnOnlyNeighbourAddressesCanChange) {
  InterfaceConfig c;
  c.addresses = {prefix("192.168.7.1/32"), prefix("192.168.7.2/32")};
  c.link_local = false;
  c.only_neighbour = kMacB;
  Interface i(c);
  i.link_up(at(0));
  i.set_addresses({prefix("192.168.7.2/32"), prefix("fd77::1/128")});
  EXPECT_FALSE(i.is_own(ip("192.168.7.1")));
  EXPECT_TRUE(i.may_send(ip("192.168.7.1"))) << "another host may have it now";
  EXPECT_EQ(i.choose_source(ip("192.168.7.1")), ip("192.168.7.2"));
  EXPECT_TRUE(i.is_own(ip("fd77::1")));
  EXPECT_EQ(i.next_deadline(), Instant::never()) << "nothing is announced";
  i.set_addresses({});
  EXPECT_EQ(i.resolve(ip("192.168.7.9"), at(1)).kind, ResKind::Unreachable);
}

TEST(InterfaceLink, LinkUpAnnouncesAddressesAndRequestsARecheck) {
  InterfaceConfig c = config_a();
  c.addresses = {prefix("10.0.0.1/24")};
  Interface a(c);
  EXPECT_EQ(a.resolve(ip("10.0.0.2"), at(0)).kind, ResKind::Pending);
  EXPECT_TRUE(drain(a).empty());  // down: nothing is sent, nothing fails
  a.run_timers(at(60000));
  EXPECT_TRUE(events(a).empty());
  a.link_up(at(60000));
  const auto out = drain_hex(a);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(std::count(out.begin(), out.end(), kArpAnnounceA), 1);  // gratuitous ARP
  EXPECT_EQ(count_of(events(a), EventKind::Recheck), 1u);
  a.link_down();
  EXPECT_TRUE(a.next_deadline().is_never());
}

// ---- hostile input --------------------------------------------------------------------------

// Mutated control traffic: no crash, and all limits hold.
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
    // Mostly repair the checksums; otherwise all frames would be rejected early.
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
  EXPECT_GT(i.counters().arp.rx, 5000u);
  EXPECT_GT(i.counters().nd.rx, 5000u);
  EXPECT_GT(i.counters().icmp.echo_replies, 500u);
  EXPECT_GT(i.counters().icmp.errors, 500u);
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
