#include "net/header_template.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/rng.h"
#include "golden_frames.h"
#include "net/classify.h"
#include "support/golden.h"

namespace urnic::net {
namespace {

using test::Bytes;

const MacAddress kMacA = *MacAddress::parse("02:00:0a:00:00:01");
const MacAddress kMacB = *MacAddress::parse("02:00:0a:00:00:02");

HeaderTemplateConfig v4_config() {
  HeaderTemplateConfig c;
  c.src_mac = kMacB;
  c.dst_mac = kMacA;
  c.src = *IpAddress::parse("10.0.0.2");
  c.dst = *IpAddress::parse("10.0.0.1");
  return c;
}

TEST(HeaderTemplate, WritesTheGoldenIpv4Header) {
  const Bytes golden = test::from_hex(test::kTcp4BtoA);
  const HeaderTemplate t(v4_config());
  ASSERT_EQ(t.size(), 34u);
  Bytes out(golden.size());
  EXPECT_EQ(t.emit(out.data(), 25, 0x1234, 2), 34u);
  std::copy(golden.begin() + 34, golden.end(), out.begin() + 34);
  EXPECT_EQ(test::to_hex(out), test::to_hex(golden));
  EXPECT_EQ(inet_fold(std::uint64_t{t.pseudo_sum(25)} + inet_sum(ByteView(out).subspan(34))),
            0xffff);
}

TEST(HeaderTemplate, WritesTheGoldenTaggedIpv6Header) {
  const Bytes golden = test::from_hex(test::kTcp6BtoAVlan42);
  HeaderTemplateConfig c;
  c.src_mac = kMacB;
  c.dst_mac = kMacA;
  c.vlan = 42;
  c.src = *IpAddress::parse("2001:db8::2");
  c.dst = *IpAddress::parse("2001:db8::1");
  c.dscp = 0x0a;
  c.flow_label = 0xbeef5;
  const HeaderTemplate t(c);
  ASSERT_EQ(t.size(), kHeaderTemplateMax);
  Bytes out(golden.size());
  EXPECT_EQ(t.emit(out.data(), 25, 7, 2), kHeaderTemplateMax);
  std::copy(golden.begin() + 58, golden.end(), out.begin() + 58);
  EXPECT_EQ(test::to_hex(out), test::to_hex(golden));
  EXPECT_EQ(inet_fold(std::uint64_t{t.pseudo_sum(25)} + inet_sum(ByteView(out).subspan(58))),
            0xffff);
}

TEST(HeaderTemplate, WritesNothingBeyondItsSize) {
  for (const std::uint16_t vlan : {0, 42}) {
    HeaderTemplateConfig c = v4_config();
    c.vlan = vlan;
    const HeaderTemplate t(c);
    Bytes out(t.size());  // exact allocation: a sanitizer detects one byte too many
    t.emit(out.data(), 1480, 0, 0);
    EXPECT_EQ(load_be16(&out[t.size() - 20 + 2]), 1500);
  }
}

TEST(HeaderTemplate, EveryIpv4HeaderVerifiesAndCarriesDontFragment) {
  Rng rng(3);
  for (int i = 0; i < 20000; ++i) {
    HeaderTemplateConfig c = v4_config();
    c.src = IpAddress::v4(static_cast<std::uint32_t>(rng.between(1 << 24, 0x7fffffff)));
    c.dst = IpAddress::v4(static_cast<std::uint32_t>(rng.between(1, 0x7fffffff)));
    c.dscp = static_cast<std::uint8_t>(rng.below(64));
    c.ttl = static_cast<std::uint8_t>(rng.between(1, 255));
    const HeaderTemplate t(c);
    Bytes out(t.size() + 20);
    const auto len = static_cast<std::uint32_t>(rng.between(20, 65515));
    const auto ecn = static_cast<std::uint8_t>(rng.below(4));
    t.emit(out.data(), len, static_cast<std::uint16_t>(rng.next()), ecn);
    const Classified k = classify(out, static_cast<std::uint32_t>(t.size() + len));
    ASSERT_EQ(k.kind, FrameKind::Tcp) << drop_reason_name(k.reason);
    ASSERT_EQ(k.l4_len, len);
    ASSERT_EQ(k.ecn, ecn);
    ASSERT_EQ(k.ttl, c.ttl);
    ASSERT_EQ(k.src, c.src);
    ASSERT_EQ(k.dst, c.dst);
    ASSERT_EQ(inet_fold(k.pseudo_sum), inet_fold(t.pseudo_sum(len)));
    ASSERT_EQ(load_be16(&out[20]), 0x4000);
  }
}

TEST(HeaderTemplate, ChangingTheDscpGivesTheSameHeaderAsBuildingWithIt) {
  for (const bool v6 : {false, true}) {
    for (const std::uint16_t vlan : {0, 5}) {
      HeaderTemplateConfig c = v4_config();
      c.vlan = vlan;
      if (v6) {
        c.src = *IpAddress::parse("fd00::2");
        c.dst = *IpAddress::parse("fd00::1");
        c.flow_label = 0xabcde;
      }
      HeaderTemplate changed(c);
      c.dscp = 0x2b;
      const HeaderTemplate made(c);
      changed.set_dscp(0x2b);
      std::uint8_t a[kHeaderTemplateMax], b[kHeaderTemplateMax];
      ASSERT_EQ(made.emit(a, 40, 7, 1), changed.emit(b, 40, 7, 1));
      EXPECT_EQ(std::memcmp(a, b, made.size()), 0) << v6 << vlan;
    }
  }
}

TEST(HeaderTemplate, NextHopCanMove) {
  HeaderTemplate t(v4_config());
  t.set_dst_mac(kMacB);
  EXPECT_EQ(t.dst_mac(), kMacB);
  Bytes out(t.size());
  t.emit(out.data(), 20, 0, 0);
  EXPECT_EQ(MacAddress::from_bytes(out.data()), kMacB);
  EXPECT_EQ(HeaderTemplate().size(), 0u);
}

}  // namespace
}  // namespace urnic::net
