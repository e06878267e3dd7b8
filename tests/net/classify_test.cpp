#include "net/classify.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/inet_checksum.h"
#include "base/rng.h"
#include "golden_frames.h"
#include "net/header_template.h"
#include "support/golden.h"
#include "support/random_bytes.h"

namespace urnic::net {
namespace {

using test::Bytes;
using test::from_hex;

Classified look(const Bytes& frame) {
  return classify(frame, static_cast<std::uint32_t>(frame.size()));
}

void fix_ipv4(Bytes& frame, std::size_t l3 = 14) {
  store_be16(&frame[l3 + 10], 0);
  store_be16(&frame[l3 + 10], inet_checksum(ipv4_header_sum(&frame[l3], (frame[l3] & 15u) * 4)));
}

// Inserts `extra` after the IPv6 header. The caller must set the next header field of the last
// extension in `extra`.
Bytes with_extension(const Bytes& frame, std::size_t l3, std::uint8_t first, const Bytes& extra) {
  Bytes out(frame);
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(l3 + 40), extra.begin(), extra.end());
  out[l3 + 6] = first;
  store_be16(&out[l3 + 4], static_cast<std::uint16_t>(out.size() - l3 - 40));
  return out;
}

TEST(Classify, FindsEveryLayerOfATcpFrameOverIpv4) {
  const Bytes f = from_hex(test::kTcp4BtoA);
  const Classified c = look(f);
  ASSERT_EQ(c.kind, FrameKind::Tcp);
  EXPECT_EQ(c.reason, DropReason::None);
  EXPECT_EQ(c.l3_offset, 14);
  EXPECT_EQ(c.l4_offset, 34);
  EXPECT_EQ(c.l4_len, 25u);
  EXPECT_EQ(c.ttl, 64);
  EXPECT_EQ(c.ecn, 2);
  EXPECT_EQ(c.vlan, 0);
  EXPECT_EQ(c.src.to_string(), "10.0.0.2");
  EXPECT_EQ(c.dst.to_string(), "10.0.0.1");
  EXPECT_EQ(c.src_mac.to_string(), "02:00:0a:00:00:02");
  EXPECT_EQ(c.dst_mac.to_string(), "02:00:0a:00:00:01");
  const ByteView l4 = ByteView(f).subspan(c.l4_offset, c.l4_len);
  EXPECT_EQ(inet_fold(std::uint64_t{c.pseudo_sum} + inet_sum(l4)), 0xffff);
}

TEST(Classify, FindsEveryLayerOfATaggedTcpFrameOverIpv6) {
  const Bytes f = from_hex(test::kTcp6BtoAVlan42);
  const Classified c = look(f);
  ASSERT_EQ(c.kind, FrameKind::Tcp);
  EXPECT_TRUE(c.v6);
  EXPECT_EQ(c.vlan, 42);
  EXPECT_EQ(c.l3_offset, 18);
  EXPECT_EQ(c.l4_offset, 58);
  EXPECT_EQ(c.l4_len, 25u);
  EXPECT_EQ(c.ecn, 2);
  EXPECT_EQ(c.src.to_string(), "2001:db8::2");
  const ByteView l4 = ByteView(f).subspan(c.l4_offset, c.l4_len);
  EXPECT_EQ(inet_fold(std::uint64_t{c.pseudo_sum} + inet_sum(l4)), 0xffff);
}

TEST(Classify, EthernetPaddingIsNotPartOfTheSegment) {
  for (const char* hex : {test::kTcp4BtoA, test::kTcp6BtoAVlan42}) {
    Bytes f = from_hex(hex);
    const std::uint32_t len = look(f).l4_len;
    f.resize(f.size() + 33, 0xee);
    EXPECT_EQ(look(f).kind, FrameKind::Tcp);
    EXPECT_EQ(look(f).l4_len, len);
  }
}

TEST(Classify, NeedsOnlyTheHeadersOfALongFrame) {
  Bytes f = from_hex(test::kTcp4BtoA);
  store_be16(&f[16], 20 + 20 + 8000);
  fix_ipv4(f);
  f.resize(14 + 20 + 20);
  const Classified c = classify(f, 14 + 20 + 20 + 8000);
  ASSERT_EQ(c.kind, FrameKind::Tcp);
  EXPECT_EQ(c.l4_len, 8020u);
  // With one byte less of TCP header available, it must not be read.
  EXPECT_EQ(classify(ByteView(f).first(53), 14 + 20 + 20 + 8000).reason, DropReason::L4Short);
}

TEST(Classify, PriorityTagMeansUntagged) {
  Bytes f = from_hex(test::kTcp6BtoAVlan42);
  store_be16(&f[14], 0xe000);  // priority 7, VLAN 0
  EXPECT_EQ(look(f).kind, FrameKind::Tcp);
  EXPECT_EQ(look(f).vlan, 0);
}

TEST(Classify, ASecondTagIsRejected) {
  Bytes f = from_hex(test::kTcp6BtoAVlan42);
  const Bytes tag = {0x81, 0x00, 0x00, 0x07};
  f.insert(f.begin() + 12, tag.begin(), tag.end());
  EXPECT_EQ(look(f).reason, DropReason::EtherType);
}

TEST(Classify, Ipv4OptionsAreSkipped) {
  Bytes f = from_hex(test::kTcp4BtoA);
  f.insert(f.begin() + 34, 8, 0x01);
  f[14] = 0x47;
  store_be16(&f[16], 45 + 8);
  fix_ipv4(f);
  const Classified c = look(f);
  ASSERT_EQ(c.kind, FrameKind::Tcp);
  EXPECT_EQ(c.l4_offset, 42);
  EXPECT_EQ(c.l4_len, 25u);
}

TEST(Classify, EachDefectOfIpv4HasItsReason) {
  const Bytes good = from_hex(test::kTcp4BtoA);
  const auto reason = [&](auto&& change, bool fix = true) {
    Bytes f = good;
    change(f);
    if (fix && f.size() >= 34) fix_ipv4(f);
    const Classified c = look(f);
    EXPECT_EQ(c.kind, FrameKind::Drop);
    return c.reason;
  };
  EXPECT_EQ(reason([](Bytes& f) { f.resize(13); }), DropReason::Short);
  EXPECT_EQ(reason([](Bytes& f) { f.resize(33); }), DropReason::Short);
  EXPECT_EQ(reason([](Bytes& f) { store_be16(&f[12], 0x88b5); }), DropReason::EtherType);
  EXPECT_EQ(reason([](Bytes& f) { f[14] = 0x65; }, false), DropReason::IpVersion);
  EXPECT_EQ(reason([](Bytes& f) { f[14] = 0x44; }, false), DropReason::IpHeader);
  EXPECT_EQ(reason([](Bytes& f) { f[14] = 0x4f; }, false), DropReason::IpHeader);
  EXPECT_EQ(reason([](Bytes& f) { f[22] ^= 1; }, false), DropReason::IpChecksum);
  EXPECT_EQ(reason([](Bytes& f) { store_be16(&f[16], 46); }), DropReason::Short);
  EXPECT_EQ(reason([](Bytes& f) { store_be16(&f[16], 19); }), DropReason::IpHeader);
  EXPECT_EQ(reason([](Bytes& f) { store_be16(&f[16], 39); }), DropReason::L4Short);
  EXPECT_EQ(reason([](Bytes& f) { f[26] = 224; }), DropReason::Source);
  EXPECT_EQ(reason([](Bytes& f) { store_be32(&f[26], 0xffffffff); }), DropReason::Source);
  EXPECT_EQ(reason([](Bytes& f) { store_be32(&f[26], 0); }), DropReason::Source);
  EXPECT_EQ(reason([](Bytes& f) { f[30] = 239; }), DropReason::Destination);
  EXPECT_EQ(reason([](Bytes& f) { store_be32(&f[30], 0xffffffff); }), DropReason::Destination);
}

// RFC 1122, 3.2.1.3: also for protocols that we do not support. Neighbour discovery is an
// exception.
TEST(Classify, InvalidSourceAddressesAreRejectedForEveryProtocol) {
  for (const std::uint8_t protocol : {1, 6, 17, 132}) {
    for (const std::uint32_t source : {0u, 7u, 0xe0000005u, 0xffffffffu}) {
      Bytes f = from_hex(test::kTcp4BtoA);
      f[23] = protocol;
      store_be32(&f[26], source);
      fix_ipv4(f);
      EXPECT_EQ(look(f).reason, DropReason::Source) << int{protocol} << " " << source;
    }
  }
  for (const std::uint8_t protocol : {6, 17, 58}) {
    Bytes f = from_hex(test::kTcp6BtoAVlan42);
    f[18 + 6] = protocol;
    for (int i = 0; i < 16; ++i) f[18 + 8 + i] = 0;
    EXPECT_EQ(look(f).reason, protocol == 58 ? DropReason::None : DropReason::Source);
    f[18 + 8 + 10] = f[18 + 8 + 11] = 0xff;
    EXPECT_EQ(look(f).reason, DropReason::Source) << "an IPv4 address in a form for programs";
  }
}

// proves: E-18
TEST(Classify, FragmentsAreRefusedWhateverTheirOffset) {
  for (const std::uint16_t bits : {0x2000, 0x0001, 0x1fff, 0x6000}) {
    Bytes f = from_hex(test::kTcp4BtoA);
    store_be16(&f[20], bits);
    fix_ipv4(f);
    EXPECT_EQ(look(f).reason, DropReason::Fragment) << bits;
  }
  const Bytes fragment = {6, 0, 0, 1, 0, 0, 0, 9};
  const Bytes v6 = with_extension(from_hex(test::kTcp6BtoAVlan42), 18, 44, fragment);
  EXPECT_EQ(look(v6).reason, DropReason::Fragment);
}

TEST(Classify, Ipv6ExtensionHeadersAreSkipped_RFC8200) {
  const Bytes base = from_hex(test::kTcp6BtoAVlan42);
  // Hop-by-hop with PadN, routing without segments left, destination options with a skippable
  // option.
  const Bytes extra = {43, 0, 1,    4, 0, 0, 0, 0,                          //
                       60, 1, 0,    0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,  //
                       6,  0, 0x1e, 2, 7, 7, 0, 0};
  const Classified c = look(with_extension(base, 18, 0, extra));
  ASSERT_EQ(c.kind, FrameKind::Tcp);
  EXPECT_EQ(c.l4_offset, 58 + 32);
  EXPECT_EQ(c.l4_len, 25u);
}

TEST(Classify, Ipv6ExtensionDefectsAreRefused_RFC8200) {
  const Bytes base = from_hex(test::kTcp6BtoAVlan42);
  const auto reason = [&](std::uint8_t first, const Bytes& extra) {
    return look(with_extension(base, 18, first, extra)).reason;
  };
  // Segments left, hop-by-hop not in first place, length beyond the frame, option beyond its
  // header, option that requires a discard.
  EXPECT_EQ(reason(43, {6, 0, 0, 1, 0, 0, 0, 0}), DropReason::Ipv6Extension);
  EXPECT_EQ(reason(60, {0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0}),
            DropReason::Ipv6Extension);
  EXPECT_EQ(reason(60, {6, 200, 1, 4, 0, 0, 0, 0}), DropReason::Ipv6Extension);
  EXPECT_EQ(reason(60, {6, 0, 1, 5, 0, 0, 0, 0}), DropReason::Ipv6Extension);
  EXPECT_EQ(reason(60, {6, 0, 0x40, 4, 0, 0, 0, 0}), DropReason::Ipv6Extension);
  // Nine headers in a row.
  Bytes many;
  for (int i = 0; i < 9; ++i) {
    const Bytes one = {static_cast<std::uint8_t>(i == 8 ? 6 : 60), 0, 1, 4, 0, 0, 0, 0};
    many.insert(many.end(), one.begin(), one.end());
  }
  EXPECT_EQ(reason(60, many), DropReason::Ipv6Extension);
  EXPECT_EQ(look(with_extension(base, 18, 60, Bytes(many.begin() + 8, many.end()))).kind,
            FrameKind::Tcp);
}

TEST(Classify, ExtensionHeadersInThePaddingAreIgnored) {
  Bytes f = from_hex(test::kTcp6BtoAVlan42);
  f[18 + 6] = 60;
  store_be16(&f[18 + 4], 0);  // the datagram ends here; the rest is padding
  f[58] = 6;
  f[59] = 0;
  EXPECT_EQ(look(f).reason, DropReason::Ipv6Extension);
}

TEST(Classify, OtherKindsAreRecognized) {
  EXPECT_EQ(look(from_hex(test::kArpRequestBtoA)).kind, FrameKind::Arp);
  EXPECT_EQ(look(from_hex(test::kEcho4RequestBtoA)).kind, FrameKind::Icmp);
  EXPECT_EQ(look(from_hex(test::kSolicitBtoA)).kind, FrameKind::Icmp6);
  EXPECT_EQ(look(from_hex(test::kListenerReportA)).kind, FrameKind::Icmp6);
  Bytes udp = from_hex(test::kTcp4BtoA);
  udp[23] = 17;
  fix_ipv4(udp);
  EXPECT_EQ(look(udp).kind, FrameKind::Other);
  EXPECT_EQ(look(udp).protocol, 17);
  udp[30] = 224;
  fix_ipv4(udp);
  EXPECT_EQ(look(udp).reason, DropReason::Destination);
}

TEST(Classify, BareDatagramsOfBothVersionsAreClassified) {
  const Bytes f4 = from_hex(test::kTcp4BtoA), f6 = from_hex(test::kTcp6BtoAVlan42);
  const ByteView d4 = ByteView(f4).subspan(14), d6 = ByteView(f6).subspan(18);
  const Classified c4 = classify_datagram(d4, static_cast<std::uint32_t>(d4.size()));
  const Classified c6 = classify_datagram(d6, static_cast<std::uint32_t>(d6.size()));
  EXPECT_EQ(c4.kind, FrameKind::Tcp);
  EXPECT_EQ(c4.l4_offset, 20);
  EXPECT_EQ(c6.kind, FrameKind::Tcp);
  EXPECT_EQ(c6.l4_offset, 40);
  const Bytes odd = {0x50, 0, 0, 0};
  EXPECT_EQ(classify_datagram(odd, 4).reason, DropReason::IpVersion);
  EXPECT_EQ(classify_datagram({}, 0).reason, DropReason::Short);
}

TEST(Classify, EveryReasonHasAName) {
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    EXPECT_FALSE(drop_reason_name(static_cast<DropReason>(i)).empty());
  }
  EXPECT_EQ(drop_reason_name(DropReason::NotForUs), "not-for-us");
}

// Hostile input: for any frame, the layers lie inside it (E-19). Exact allocations let a sanitizer
// detect any read past the end.
TEST(Classify, OffsetsOfHostileFramesStayInside) {
  const std::vector<Bytes> seeds = {
      from_hex(test::kTcp4BtoA),
      from_hex(test::kTcp6BtoAVlan42),
      from_hex(test::kSolicitBtoA),
      from_hex(test::kListenerReportA),
      from_hex(test::kPacketTooBigToA),
      with_extension(from_hex(test::kTcp6BtoAVlan42), 18, 60, {6, 0, 1, 4, 0, 0, 0, 0})};
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  int tcp = 0;
  for (int i = 0; i < 100000; ++i) {
    Bytes f = rng.chance(0.2) ? test::random_bytes(rng, rng.below(200))
                              : test::mutate(rng, seeds[rng.below(seeds.size())]);
    if (f.size() >= 34 && f[12] == 8 && f[13] == 0 && rng.chance(0.8) &&
        14u + (f[14] & 15u) * 4 <= f.size()) {
      fix_ipv4(f);
    }
    f.shrink_to_fit();
    const auto total = static_cast<std::uint32_t>(f.size() + rng.below(3) * 700);
    const Classified c = classify(f, total);
    if (c.kind == FrameKind::Drop) {
      ASSERT_NE(c.reason, DropReason::None);
      continue;
    }
    ASSERT_LE(c.l3_offset, f.size());
    if (c.kind == FrameKind::Arp) continue;
    ASSERT_LE(c.l4_offset, f.size());
    ASSERT_LE(c.l4_offset + c.l4_len, total);
    if (c.kind == FrameKind::Tcp) {
      ++tcp;
      ASSERT_GE(c.l4_len, 20u);
      ASSERT_LE(c.l4_offset + 20u, f.size());
    }
    classify_datagram(f, total);
  }
  EXPECT_GT(tcp, 1000);
}

}  // namespace
}  // namespace urnic::net
