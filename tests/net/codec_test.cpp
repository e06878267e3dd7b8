// Ethernet, ARP, IP, ICMP, neighbour discovery: parsing and building.
#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "golden_frames.h"
#include "net/addressing.h"
#include "net/arp.h"
#include "net/classify.h"
#include "net/ethernet.h"
#include "net/icmp.h"
#include "net/ipv4.h"
#include "net/ipv6.h"
#include "net/ndp.h"
#include "support/ethernet_view.h"
#include "support/golden.h"
#include "support/random_bytes.h"

namespace urnic::net {
namespace {

using test::Bytes;
using test::from_hex;

TEST(Ethernet, TaggedAndUntaggedRoundTrip) {
  for (const char* hex : {test::kTcp4BtoA, test::kTcp6BtoAVlan42}) {
    const Bytes f = from_hex(hex);
    const auto v = parse_ethernet(f);
    ASSERT_TRUE(v);
    Bytes out(v->header.size());
    emit_ethernet(v->header, out.data());
    EXPECT_EQ(out, Bytes(f.begin(), f.begin() + static_cast<std::ptrdiff_t>(out.size())));
    EXPECT_EQ(v->payload_offset, out.size());
  }
}

TEST(Ethernet, ShortFramesAreNotParsed) {
  const Bytes f = from_hex(test::kTcp6BtoAVlan42);
  EXPECT_FALSE(parse_ethernet(ByteView(f).first(13)));
  EXPECT_FALSE(parse_ethernet(ByteView(f).first(17)));
  EXPECT_TRUE(parse_ethernet(ByteView(f).first(18)));
}

TEST(Arp, GoldenFramesRoundTrip) {
  for (const char* hex : {test::kArpRequestBtoA, test::kArpReplyAtoB, test::kArpProbeA}) {
    const Bytes f = from_hex(hex);
    const auto a = parse_arp(ByteView(f).subspan(14));
    ASSERT_TRUE(a);
    Bytes out(kArpPacket);
    emit_arp(*a, out.data());
    EXPECT_EQ(out, Bytes(f.begin() + 14, f.end()));
  }
  const Bytes f = from_hex(test::kArpReplyAtoB);
  const auto a = *parse_arp(ByteView(f).subspan(14));
  EXPECT_EQ(a.operation, kArpReply);
  EXPECT_EQ(a.sender_ip.to_string(), "10.0.0.1");
  EXPECT_EQ(a.target_mac.to_string(), "02:00:0a:00:00:02");
}

TEST(Arp, OtherHardwareProtocolOrOperationIsRefused) {
  const Bytes f = from_hex(test::kArpRequestBtoA);
  for (const std::size_t at : {0u, 1u, 2u, 3u, 4u, 5u, 6u}) {
    Bytes b(f.begin() + 14, f.end());
    b[at] ^= 0x10;
    EXPECT_FALSE(parse_arp(b)) << at;
  }
  EXPECT_FALSE(parse_arp(ByteView(f).subspan(14, 27)));
}

TEST(Ipv4, GoldenHeaderRoundTrips) {
  const Bytes f = from_hex(test::kTcp4BtoA);
  const auto v = parse_ipv4(ByteView(f).subspan(14));
  ASSERT_TRUE(v);
  EXPECT_EQ(v->header.id, 0x1234);
  EXPECT_FALSE(v->header.is_fragment());
  EXPECT_TRUE(ipv4_checksum_ok(&f[14], 20));
  Bytes out(20);
  emit_ipv4(v->header, out.data());
  EXPECT_EQ(out, Bytes(f.begin() + 14, f.begin() + 34));
}

TEST(Ipv6, GoldenHeaderRoundTrips) {
  const Bytes f = from_hex(test::kTcp6BtoAVlan42);
  const auto h = parse_ipv6(ByteView(f).subspan(18));
  ASSERT_TRUE(h);
  EXPECT_EQ(h->flow_label, 0xbeef5u);
  EXPECT_EQ(h->traffic_class, 0x2a);
  Bytes out(40);
  emit_ipv6(*h, out.data());
  EXPECT_EQ(out, Bytes(f.begin() + 18, f.begin() + 58));
  EXPECT_FALSE(parse_ipv6(ByteView(f).subspan(18, 39)));
}

TEST(Icmp, ChecksumsOfGoldenMessagesAreRight) {
  for (const char* hex : {test::kEcho4RequestBtoA, test::kEcho6RequestBtoA, test::kSolicitBtoA}) {
    Bytes f = from_hex(hex);
    const Classified c = classify(f, static_cast<std::uint32_t>(f.size()));
    const std::uint32_t pseudo = c.v6 ? c.pseudo_sum : 0;
    const MutBytes m = MutBytes(f).subspan(c.l4_offset, c.l4_len);
    EXPECT_TRUE(icmp_checksum_ok(m, pseudo));
    m[7] ^= 1;
    EXPECT_FALSE(icmp_checksum_ok(m, pseudo));
    set_icmp_checksum(m, pseudo);
    EXPECT_TRUE(icmp_checksum_ok(m, pseudo));
  }
}

TEST(Icmp, FragmentationNeededQuotesOurSegment_RFC1191) {
  const Bytes f = from_hex(test::kFragNeededToA);
  const auto e = parse_icmp_error(ByteView(f).subspan(34), false);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->kind, IcmpError::Kind::PacketTooBig);
  EXPECT_EQ(e->mtu, 1400u);
  EXPECT_EQ(e->local.to_string(), "10.0.0.1:4420");
  EXPECT_EQ(e->remote.to_string(), "192.0.2.9:40001");
  EXPECT_EQ(e->seq, 0xdeadbeefu);
}

TEST(Icmp, PacketTooBigQuotesOurSegment_RFC8201) {
  Bytes f = from_hex(test::kPacketTooBigToA);
  const auto e = parse_icmp_error(ByteView(f).subspan(54), true);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->kind, IcmpError::Kind::PacketTooBig);
  EXPECT_EQ(e->mtu, 1400u);
  EXPECT_EQ(e->local.to_string(), "[2001:db8::1]:4420");
  EXPECT_EQ(e->seq, 0xdeadbeefu);
  store_be32(&f[54 + 4], 600);  // below the minimum link MTU
  EXPECT_EQ(parse_icmp_error(ByteView(f).subspan(54), true)->mtu, 1280u);
}

TEST(Icmp, ARouterWithoutMtuYieldsTheNextPlateau_RFC1191) {
  Bytes f = from_hex(test::kFragNeededToA);
  store_be16(&f[34 + 6], 0);
  const auto mtu_for = [&](std::uint16_t quoted) {
    store_be16(&f[34 + 8 + 2], quoted);
    return parse_icmp_error(ByteView(f).subspan(34), false)->mtu;
  };
  EXPECT_EQ(mtu_for(1500), 1492u);
  EXPECT_EQ(mtu_for(1492), 1006u);
  EXPECT_EQ(mtu_for(9000), 8166u);
  EXPECT_EQ(mtu_for(68), 68u);
}

TEST(Icmp, HardErrorsAreMarked_RFC1122) {
  Bytes f = from_hex(test::kFragNeededToA);
  const auto code = [&](std::uint8_t type, std::uint8_t c) {
    f[34] = type;
    f[35] = c;
    return *parse_icmp_error(ByteView(f).subspan(34), false);
  };
  EXPECT_FALSE(code(3, 1).hard);
  EXPECT_TRUE(code(3, 2).hard);
  EXPECT_TRUE(code(3, 3).hard);
  EXPECT_EQ(code(11, 0).kind, IcmpError::Kind::TimeExceeded);
  EXPECT_EQ(code(12, 0).kind, IcmpError::Kind::ParameterProblem);
}

TEST(Icmp, OnlyQuotesOfTcpSegmentsAreAccepted) {
  const Bytes f = from_hex(test::kFragNeededToA);
  const auto refused = [&](std::size_t at, std::uint8_t value) {
    Bytes m(f.begin() + 34, f.end());
    m[at] = value;
    return !parse_icmp_error(m, false);
  };
  EXPECT_TRUE(refused(0, 8));       // an echo request
  EXPECT_TRUE(refused(8 + 9, 17));  // quotes UDP
  EXPECT_TRUE(refused(8 + 7, 1));   // a later fragment has no ports
  EXPECT_TRUE(refused(8, 0x46));    // options push the ports out of the quote
  EXPECT_TRUE(refused(8, 0x65));
  EXPECT_FALSE(parse_icmp_error(ByteView(f).subspan(34, 35), false));
}

TEST(Ndp, GoldenMessagesRoundTrip) {
  for (const char* hex :
       {test::kSolicitBtoA, test::kAdvertAtoB, test::kAdvertUnsolicitedA, test::kDetectionA}) {
    const Bytes f = from_hex(hex);
    const Classified c = classify(f, static_cast<std::uint32_t>(f.size()));
    const auto m = parse_nd(ByteView(f).subspan(c.l4_offset, c.l4_len));
    ASSERT_TRUE(m);
    EXPECT_EQ(m->target.to_string(), "2001:db8::1");
    Bytes out(kNdWithOption);
    out.resize(emit_nd(*m, c.src, c.dst, out.data()));
    EXPECT_EQ(out, Bytes(f.begin() + c.l4_offset, f.end()));
  }
}

TEST(Ndp, DefectsAreRefused_RFC4861_7_1) {
  const Bytes f = from_hex(test::kSolicitBtoA);
  const auto accepts = [&](auto&& change) {
    Bytes m(f.begin() + 54, f.end());
    change(m);
    return parse_nd(m).has_value();
  };
  EXPECT_TRUE(accepts([](Bytes&) {}));
  EXPECT_FALSE(accepts([](Bytes& m) { m.resize(23); }));
  EXPECT_FALSE(accepts([](Bytes& m) { m[1] = 1; }));
  EXPECT_FALSE(accepts([](Bytes& m) { m[8] = 0xff; }));  // multicast target
  EXPECT_FALSE(accepts([](Bytes& m) { m[25] = 0; }));    // option of length 0
  EXPECT_FALSE(accepts([](Bytes& m) { m[25] = 2; }));    // option beyond the message
  EXPECT_FALSE(accepts([](Bytes& m) { m.resize(25); }));
  EXPECT_FALSE(accepts([](Bytes& m) { m[0] = 133; }));
}

TEST(Ndp, ListenerReportMatchesGolden) {
  const Bytes f = from_hex(test::kListenerReportA);
  const IpAddress group = solicited_node(*IpAddress::parse("2001:db8::1"));
  Bytes out(mld_report_size(1));
  EXPECT_EQ(emit_mld_report({&group, 1}, IpAddress::any_v6(), out.data()), out.size());
  EXPECT_EQ(out, Bytes(f.begin() + 54, f.end()));
}

TEST(Addressing, AddressesAreDerivedCorrectly) {
  const IpAddress v4 = *IpAddress::parse("10.1.2.3");
  const IpAddress v6 = *IpAddress::parse("2001:db8::abcd:1234");
  EXPECT_EQ(mac_from_ip(v4).to_string(), "02:00:0a:01:02:03");
  EXPECT_FALSE(mac_from_ip(v6).is_multicast());
  EXPECT_NE(mac_from_ip(v6), mac_from_ip(*IpAddress::parse("2001:db8:1::abcd:1234")));
  EXPECT_EQ(link_local_from_mac(mac_from_ip(v4)).to_string(), "fe80::aff:fe01:203");
  EXPECT_EQ(solicited_node(v6).to_string(), "ff02::1:ffcd:1234");
  EXPECT_EQ(multicast_mac(solicited_node(v6)).to_string(), "33:33:ff:cd:12:34");
  EXPECT_EQ(multicast_mac(*IpAddress::parse("239.129.2.3")).to_string(), "01:00:5e:01:02:03");
}

// Parsers with hostile bytes, in exact allocations.
TEST(Codecs, HostileBytesAreHandled) {
  constexpr std::uint64_t kSeed = 5;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  std::vector<Bytes> seeds;
  for (const char* hex : {test::kFragNeededToA, test::kPacketTooBigToA, test::kSolicitBtoA,
                          test::kAdvertAtoB, test::kArpReplyAtoB}) {
    const Bytes f = from_hex(hex);
    for (const std::size_t skip : {14u, 34u, 54u}) {
      if (f.size() > skip)
        seeds.emplace_back(f.begin() + static_cast<std::ptrdiff_t>(skip), f.end());
    }
  }
  int errors = 0, nd = 0;
  for (int i = 0; i < 100000; ++i) {
    const Bytes b = rng.chance(0.1) ? test::random_bytes(rng, rng.below(100))
                                    : test::mutate(rng, seeds[rng.below(seeds.size())]);
    parse_arp(b);
    parse_ipv4(b);
    parse_ipv6(b);
    nd += parse_nd(b).has_value();
    const auto v4 = parse_icmp_error(b, false), v6 = parse_icmp_error(b, true);
    errors += v4.has_value() + v6.has_value();
    using Kind = IcmpError::Kind;
    if (v4 && v4->kind == Kind::PacketTooBig) {
      ASSERT_GE(v4->mtu, 68u);
    }
    if (v6 && v6->kind == Kind::PacketTooBig) {
      ASSERT_GE(v6->mtu, 1280u);
    }
  }
  EXPECT_GT(errors, 1000);
  EXPECT_GT(nd, 1000);
}

}  // namespace
}  // namespace urnic::net
