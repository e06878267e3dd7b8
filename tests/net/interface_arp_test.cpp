// ARP of an interface (RFC 826), and duplicate address detection (RFC 5227, 4862).
#include <gtest/gtest.h>

#include "interface_fixture.h"
#include "net/interface.h"
#include "net/ipv4.h"
#include "net/ipv6.h"
#include "support/ethernet_view.h"

namespace urnic::net {
namespace {

using namespace urnic::test;
using EventKind = Event::Kind;
using ResKind = Resolution::Kind;

// ---- ARP ------------------------------------------------------------------------------------

TEST(InterfaceArp, RepliesAndRequestsMatchGoldenBytes_RFC826) {
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

TEST(InterfaceArp, RequestsForOthersAreIgnoredAndCreateNoEntry) {
  Interface a(config_a());
  start(a, at(0));
  Bytes f = from_hex(kArpRequestBtoA);
  f[41] = 7;  // who has 10.0.0.7?
  feed(a, f, at(1));
  EXPECT_TRUE(drain(a).empty());
  EXPECT_EQ(a.neighbours().size(), 0u);
}

TEST(InterfaceArp, UnsolicitedRepliesAndAnnouncementsDoNotPoisonTheCache) {
  Interface b(config_b());
  start(b, at(0));
  feed(b, kArpReplyAtoB, at(1));
  feed(b, kArpAnnounceA, at(2));
  EXPECT_EQ(b.neighbours().size(), 0u);
  EXPECT_EQ(b.counters().neighbours.unsolicited_ignored, 2u);
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
  EXPECT_EQ(b.counters().neighbours.changed, 1u);
}

TEST(InterfaceArp, OffLinkSendersCreateNoEntryButAreAnswered) {
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
  EXPECT_EQ(a.counters().arp.bad, 1u);
  f = from_hex(kArpRequestBtoA);
  f[6] = 0x01;  // Ethernet source
  feed(a, f, at(1));
  EXPECT_EQ(a.counters().dropped_by(DropReason::NotForUs), 1u);
  EXPECT_TRUE(drain(a).empty());
}

TEST(InterfaceArp, FramesOfAnotherVlanAreIgnored) {
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

TEST(InterfaceDad, AnAddressIsProbedThenAnnouncedThenUsed_RFC5227) {
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
  EXPECT_EQ(count_of(events(a), EventKind::AddressUsable), 1u);
  EXPECT_TRUE(a.next_deadline().is_never());
}

TEST(InterfaceDad, AnAnswerToAProbeMakesTheAddressDuplicate_RFC5227) {
  Interface a(with_detection());
  a.link_up(at(0));
  a.run_timers(at(1000));
  Bytes taken = from_hex(kArpReplyAtoB);  // "10.0.0.1 is at ..." from another host
  taken[11] = taken[27] = 0x55;
  store_be32(&taken[38], 0);
  std::copy(kMacA.bytes.begin(), kMacA.bytes.end(), taken.begin());
  feed(a, taken, at(1001));
  a.run_timers(at(60000));
  EXPECT_FALSE(a.is_own(ip("10.0.0.1")));
  EXPECT_TRUE(a.is_own(ip("2001:db8::1")));
  const auto ev = events(a);
  ASSERT_EQ(count_of(ev, EventKind::AddressDuplicate), 1u);
  EXPECT_EQ(a.counters().address_conflicts, 1u);
  drain(a);
  feed(a, kArpRequestBtoA, at(60001));  // neither defended nor answered
  EXPECT_TRUE(drain(a).empty());
  // On another network the address may be free.
  a.link_down();
  a.link_up(at(70000));
  a.run_timers(at(90000));
  EXPECT_TRUE(a.is_own(ip("10.0.0.1")));
}

TEST(InterfaceDad, TwoHostsProbingAtOnceBothDetectTheConflict_RFC5227) {
  Interface a(with_detection());
  a.link_up(at(0));
  Bytes probe = from_hex(kArpProbeA);
  probe[11] = probe[27] = 0x55;
  feed(a, probe, at(1));
  EXPECT_EQ(count_of(events(a), EventKind::AddressDuplicate), 1u);
  // Our own probe, reflected by the wire, is not a conflict.
  Interface b(with_detection());
  b.link_up(at(0));
  feed(b, kArpProbeA, at(1));
  EXPECT_EQ(count_of(events(b), EventKind::AddressDuplicate), 0u);
}

TEST(InterfaceDad, DetectsDuplicatesOverIpv6_RFC4862) {
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

TEST(InterfaceDad, Ipv6ConflictsAreDetectedByAdvertisementAndProbe_RFC4862) {
  for (const char* hex : {kAdvertUnsolicitedA, kDetectionA}) {
    InterfaceConfig c = with_detection();
    c.mac = kMacB;  // so that the golden frames come from another host
    Interface i(c);
    i.link_up(at(0));
    feed(i, hex, at(1));
    const auto ev = events(i);
    ASSERT_EQ(count_of(ev, EventKind::AddressDuplicate), 1u);
    i.run_timers(at(20000));
    EXPECT_FALSE(i.is_own(ip("2001:db8::1")));
  }
  // A normal solicitation for a tentative address is neither answered nor a conflict.
  Interface i(with_detection());
  i.link_up(at(0));
  drain(i);
  feed(i, kSolicitBtoA, at(1));
  EXPECT_TRUE(drain(i).empty());
  EXPECT_EQ(count_of(events(i), EventKind::AddressDuplicate), 0u);
}

TEST(InterfaceDad, UsableAddressesAreDefendedOncePerInterval_RFC5227) {
  InterfaceConfig c = config_a();
  c.mac = kMacB;
  Interface i(c);
  start(i, at(0));
  for (int ms = 10000; ms < 19000; ms += 100) feed(i, kArpAnnounceA, at(ms));
  EXPECT_EQ(drain(i).size(), 1u);
  EXPECT_TRUE(i.is_own(ip("10.0.0.1")));
  EXPECT_EQ(count_of(events(i), EventKind::AddressConflict), 1u);
  feed(i, kArpAnnounceA, at(20001));
  EXPECT_EQ(drain(i).size(), 1u);
  feed(i, kAdvertUnsolicitedA, at(40000));
  EXPECT_EQ(drain(i).size(), 1u);
  EXPECT_EQ(i.counters().address_defences, 3u);
}

}  // namespace
}  // namespace urnic::net
