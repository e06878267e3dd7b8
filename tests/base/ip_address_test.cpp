#include "base/ip_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_set>

#include "base/rng.h"

namespace urnic {
namespace {

static_assert(IpAddress::v4(10, 0, 0, 1).v4_value() == 0x0a000001);
static_assert(IpAddress::v4(224, 0, 0, 1).is_multicast());
static_assert(IpAddress{}.is_any() && IpAddress::any_v6().is_any());
static_assert(IpPrefix{IpAddress::v4(10, 0, 0, 0), 8}.contains(IpAddress::v4(10, 255, 1, 2)));

IpAddress ip(std::string_view text) {
  const auto a = IpAddress::parse(text);
  EXPECT_TRUE(a.has_value()) << text;
  return a.value_or(IpAddress{});
}

TEST(IpAddress, ParsesAndPrintsVersion4) {
  EXPECT_EQ(ip("192.168.0.1"), IpAddress::v4(192, 168, 0, 1));
  EXPECT_EQ(ip("255.255.255.255").to_string(), "255.255.255.255");
  EXPECT_EQ(ip("0.0.0.0"), IpAddress{});
  for (const char* bad : {"", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1..3.4",
                          "1.2.3.", ".1.2.3", "1.2.3.4 ", " 1.2.3.4", "+1.2.3.4", "a.b.c.d",
                          "1.2.3.4/8", "0x1.2.3.4", "1.2.3.99999999999"}) {
    EXPECT_FALSE(IpAddress::parse(bad)) << bad;
  }
}

// RFC 5952, section 4, and the examples of RFC 4291, 2.2.
TEST(IpAddress, PrintsVersion6InTheFormOfRfc5952) {
  const std::pair<const char*, const char*> cases[] = {
      {"2001:0db8:0000:0000:0001:0000:0000:0001", "2001:db8::1:0:0:1"},
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
      {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
      {"2001:DB8::ABCD", "2001:db8::abcd"},
      {"::", "::"},
      {"::1", "::1"},
      {"1::", "1::"},
      {"ff01:0:0:0:0:0:0:101", "ff01::101"},
      {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
      {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
      {"1:0:0:2:3:4:0:0", "1::2:3:4:0:0"},
      {"::ffff:192.0.2.33", "::ffff:192.0.2.33"},
      {"0:0:0:0:0:FFFF:129.144.52.38", "::ffff:129.144.52.38"},
      {"::13.1.68.3", "::d01:4403"},
  };
  for (const auto& [in, out] : cases) EXPECT_EQ(ip(in).to_string(), out) << in;
}

TEST(IpAddress, RefusesMalformedVersion6) {
  for (const char* bad : {":",
                          ":::",
                          "1:2:3:4:5:6:7",
                          "1:2:3:4:5:6:7:8:9",
                          "1::2::3",
                          "12345::",
                          "g::",
                          "1:",
                          ":1",
                          "1:2:3:4:5:6:7:8::",
                          "::1:2:3:4:5:6:7:8",
                          "1:2:3:4::5:6:7:8",
                          "::1.2.3",
                          "::1.2.3.4:5",
                          "1.2.3.4::",
                          "fe80::1%eth0",
                          "[::1]",
                          "1:2:3:4:5:6:7:1.2.3.4",
                          ":::1",
                          "::1 "}) {
    EXPECT_FALSE(IpAddress::parse(bad)) << bad;
  }
}

TEST(IpAddress, AgreesWithTheSystemOnRandomAddresses) {
  Rng rng(1);
  for (int i = 0; i < 20000; ++i) {
    std::array<std::uint8_t, 16> b{};
    for (std::size_t g = 0; g < 8; ++g) {
      if (rng.chance(0.5)) continue;
      b[2 * g] = rng.chance(0.5) ? static_cast<std::uint8_t>(rng.next()) : 0;
      b[2 * g + 1] = static_cast<std::uint8_t>(rng.next());
    }
    const IpAddress a = IpAddress::v6(b);
    char text[INET6_ADDRSTRLEN];
    ASSERT_NE(inet_ntop(AF_INET6, b.data(), text, sizeof text), nullptr);
    ASSERT_EQ(ip(text), a) << text;
    ASSERT_EQ(ip(a.to_string()), a) << text;
    // The system also prints IPv4-compatible addresses in the mixed form.
    if (std::string_view(text).find('.') == std::string_view::npos) {
      ASSERT_EQ(a.to_string(), text);
    }
  }
}

TEST(IpAddress, AcceptsWhatTheSystemAcceptsOnRandomText) {
  Rng rng(2);
  const std::string_view alphabet = "0123456789abf:::::..";
  int accepted = 0;
  for (int i = 0; i < 300000; ++i) {
    std::string text;
    for (std::uint64_t n = rng.below(14); n != 0; --n) text += alphabet[rng.below(alphabet.size())];
    std::uint8_t system[16];
    const bool v6 = text.find(':') != std::string::npos;
    const bool want = inet_pton(v6 ? AF_INET6 : AF_INET, text.c_str(), system) == 1;
    const auto got = IpAddress::parse(text);
    ASSERT_EQ(got.has_value(), want) << text;
    if (want) {
      ++accepted;
      ASSERT_EQ(*got, IpAddress::from_bytes({system, v6 ? 16u : 4u})) << text;
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(IpAddress, KnowsTheSpecialRanges) {
  EXPECT_TRUE(ip("127.3.2.1").is_loopback());
  EXPECT_TRUE(ip("::1").is_loopback());
  EXPECT_FALSE(ip("::2").is_loopback());
  EXPECT_FALSE(ip("128.0.0.1").is_loopback());
  EXPECT_TRUE(ip("239.255.0.1").is_multicast());
  EXPECT_TRUE(ip("ff02::1").is_multicast());
  EXPECT_FALSE(ip("240.0.0.1").is_multicast());
  EXPECT_TRUE(ip("169.254.9.9").is_link_local());
  EXPECT_TRUE(ip("fe80::1").is_link_local());
  EXPECT_TRUE(ip("febf::1").is_link_local());
  EXPECT_FALSE(ip("fec0::1").is_link_local());
  EXPECT_TRUE(ip("255.255.255.255").is_broadcast());
  EXPECT_TRUE(ip("::ffff:1.2.3.4").is_v4_mapped());
  EXPECT_EQ(ip("::ffff:1.2.3.4").unmapped(), ip("1.2.3.4"));
  EXPECT_EQ(ip("::1.2.3.4").unmapped(), ip("::102:304"));
}

TEST(IpAddress, AZoneMakesAnotherAddressAndIsNotInItsBytes) {
  const IpAddress plain = ip("fe80::1"), two = plain.with_zone(2), three = plain.with_zone(3);
  EXPECT_EQ(two.zone(), 2u);
  EXPECT_NE(two, plain);
  EXPECT_NE(two, three);
  EXPECT_EQ(two.without_zone(), plain);
  EXPECT_TRUE(std::ranges::equal(two.bytes(), plain.bytes()));
  EXPECT_EQ(IpAddress::from_bytes(two.bytes()), plain);
  EXPECT_EQ(two.masked(128), plain) << "prefixes are of no zone";
  EXPECT_EQ(std::unordered_set<IpAddress>({plain, two, three, two}).size(), 3u);
  EXPECT_TRUE(ip("255.255.255.255") < two && two < ip("fe80::2").with_zone(3));
  EXPECT_EQ(plain.with_zone(IpAddress::kMostZone).zone(), IpAddress::kMostZone);
  for (const char* of_none : {"169.254.0.1", "fd77::1", "::1", "ff02::1", "::ffff:169.254.0.1"}) {
    EXPECT_EQ(ip(of_none).with_zone(2), ip(of_none)) << of_none;
  }
}

TEST(IpAddress, AZoneIsWrittenAsANumber) {
  const auto read = IpAddress::parse_zoned("fe80::1%2");
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, ip("fe80::1").with_zone(2));
  EXPECT_EQ(read->to_string(), "fe80::1%2");
  EXPECT_EQ(IpAddress::parse_zoned("febf::1%2147483647")->zone(), IpAddress::kMostZone);
  EXPECT_EQ(IpAddress::parse_zoned("fe80::1"), ip("fe80::1"));
  EXPECT_EQ(IpAddress::parse_zoned("10.0.0.1"), ip("10.0.0.1"));
  for (const char* bad : {"fe80::1%", "fe80::1%0", "fe80::1%02", "fe80::1%-1", "fe80::1%+1",
                          "fe80::1% 1", "fe80::1%1 ", "fe80::1%1%1", "fe80::1%eth0", "fd77::1%2",
                          "169.254.0.1%2", "fe80::1%2147483648", "fe80::1%4294967297", "%2"}) {
    EXPECT_FALSE(IpAddress::parse_zoned(bad)) << bad;
  }
  EXPECT_FALSE(IpAddress::parse("fe80::1%2"));
  EXPECT_FALSE(IpPrefix::parse("fe80::1%2/64"));
}

TEST(IpAddress, TheFamiliesAreDistinctAndOrdered) {
  EXPECT_NE(IpAddress::any_v4(), IpAddress::any_v6());
  EXPECT_LT(ip("255.255.255.255"), ip("::"));
  EXPECT_LT(ip("9.0.0.1"), ip("10.0.0.0"));
  const std::unordered_set<IpAddress> set = {ip("1.2.3.4"), ip("1.2.3.4"), ip("::1")};
  EXPECT_EQ(set.size(), 2u);
}

TEST(IpPrefix, ParsesPrintsAndContains) {
  const auto p = IpPrefix::parse("10.1.2.3/8");
  ASSERT_TRUE(p);
  EXPECT_EQ(p->to_string(), "10.1.2.3/8");
  EXPECT_EQ(p->network(), ip("10.0.0.0"));
  EXPECT_TRUE(p->contains(ip("10.200.0.1")));
  EXPECT_FALSE(p->contains(ip("11.0.0.1")));
  EXPECT_FALSE(p->contains(ip("::ffff:10.0.0.1")));
  EXPECT_EQ(IpPrefix::parse("10.0.0.1")->length, 32);
  EXPECT_EQ(IpPrefix::parse("::1")->length, 128);
  EXPECT_TRUE(IpPrefix::parse("0.0.0.0/0")->contains(ip("200.1.1.1")));
  EXPECT_TRUE(IpPrefix::parse("2001:db8::/33")->contains(ip("2001:db8:7fff::1")));
  EXPECT_FALSE(IpPrefix::parse("2001:db8::/33")->contains(ip("2001:db8:8000::1")));
  for (const char* bad : {"10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/08", "/8",
                          "10.0.0.0/8/8", "10/8"}) {
    EXPECT_FALSE(IpPrefix::parse(bad)) << bad;
  }
}

TEST(IpPrefix, ContainsAgreesWithABitwiseComparison) {
  Rng rng(3);
  for (int i = 0; i < 5000; ++i) {
    std::array<std::uint8_t, 16> a{};
    for (auto& b : a) b = static_cast<std::uint8_t>(rng.next());
    auto other = a;
    const std::uint64_t flip = rng.below(128);
    other[flip / 8] ^= static_cast<std::uint8_t>(0x80 >> flip % 8);
    const IpPrefix p{IpAddress::v6(a), static_cast<std::uint8_t>(rng.below(129))};
    ASSERT_EQ(p.contains(IpAddress::v6(other)), flip >= p.length);
  }
}

TEST(SocketAddress, ParsesAndPrints) {
  EXPECT_EQ(SocketAddress::parse("1.2.3.4:80"), (SocketAddress{ip("1.2.3.4"), 80}));
  EXPECT_EQ(SocketAddress::parse("[::1]:65535"), (SocketAddress{ip("::1"), 65535}));
  EXPECT_EQ(SocketAddress::parse("[::1]:80")->to_string(), "[::1]:80");
  EXPECT_EQ(SocketAddress::parse("1.2.3.4:0")->to_string(), "1.2.3.4:0");
  for (const char* bad :
       {"", ":", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:-1", "::1:80", "[::1]",
        "[1.2.3.4]:80", "[::1]80", "[::1:80", "]:80", "[]:80", "1.2.3.4:080", "1.2.3.4:8 "}) {
    EXPECT_FALSE(SocketAddress::parse(bad)) << bad;
  }
}

TEST(SocketAddress, MayHaveAZoneWhereItIsAskedFor) {
  const auto at = SocketAddress::parse_zoned("[fe80::1%2]:80");
  ASSERT_TRUE(at);
  EXPECT_EQ(at->ip.zone(), 2u);
  EXPECT_EQ(at->to_string(), "[fe80::1%2]:80");
  EXPECT_EQ(SocketAddress::parse_zoned("10.0.0.1:80"), SocketAddress::parse("10.0.0.1:80"));
  EXPECT_FALSE(SocketAddress::parse("[fe80::1%2]:80"));
  EXPECT_FALSE(SocketAddress::parse_zoned("fe80::1%2:80"));
}

TEST(MacAddress, ParsesAndPrints) {
  const auto m = MacAddress::parse("02:0A:fb:00:00:9c");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->to_string(), "02:0a:fb:00:00:9c");
  EXPECT_EQ(MacAddress::parse("02-0a-fb-00-00-9c"), m);
  EXPECT_FALSE(m->is_multicast());
  EXPECT_TRUE(MacAddress::parse("01:00:5e:00:00:01")->is_multicast());
  EXPECT_TRUE(MacAddress::parse("ff:ff:ff:ff:ff:ff")->is_broadcast());
  EXPECT_TRUE(MacAddress{}.is_zero());
  for (const char* bad : {"", "02:0a:fb:00:00", "02:0a:fb:00:00:9c:", "02:0a-fb:00:00:9c",
                          "02:0a:fb:00:00:9g", "020afb00009c", "02.0a.fb.00.00.9c"}) {
    EXPECT_FALSE(MacAddress::parse(bad)) << bad;
  }
}

}  // namespace
}  // namespace urnic
