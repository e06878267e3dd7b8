#include "base/access_list.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"

namespace urnic {
namespace {

IpAddress ip(const std::string& text) {
  return *IpAddress::parse(text);
}
IpPrefix prefix(const std::string& text) {
  return *IpPrefix::parse(text);
}

// proves: AC-1
TEST(AccessList, WithoutRulesEveryAddressIsAdmitted) {
  const AccessList all;
  EXPECT_TRUE(all.empty());
  EXPECT_TRUE(all.admits(ip("10.0.0.1")));
  EXPECT_TRUE(all.admits(ip("fd77::1")));
}

// proves: AC-1
TEST(AccessList, OnlyDeniedAddressesAreRefused) {
  AccessList list;
  list.deny(prefix("10.1.2.3/8"));
  EXPECT_FALSE(list.empty());
  EXPECT_FALSE(list.admits(ip("10.0.0.0")));
  EXPECT_FALSE(list.admits(ip("10.255.255.255")));
  EXPECT_TRUE(list.admits(ip("9.255.255.255")));
  EXPECT_TRUE(list.admits(ip("11.0.0.0")));
  EXPECT_TRUE(list.admits(ip("a00::1"))) << "the same bytes in the other version";
}

// proves: AC-1
TEST(AccessList, AnAllowedPrefixExcludesAllOtherAddressesOfBothVersions) {
  AccessList list;
  list.allow(prefix("192.168.7.0/25"));
  EXPECT_TRUE(list.admits(ip("192.168.7.127")));
  EXPECT_FALSE(list.admits(ip("192.168.7.128")));
  EXPECT_FALSE(list.admits(ip("fd77::1")));
  EXPECT_FALSE(list.admits(ip("::1")));
}

// proves: AC-1
TEST(AccessList, TheLongestPrefixDecidesWhateverTheOrder) {
  AccessList list;
  list.allow(prefix("fd77::/16"));
  list.deny(prefix("fd77:0:0:5::/64"));
  list.allow(prefix("fd77:0:0:5::9"));
  list.deny(prefix("fd77::/32"));
  list.allow(prefix("fd77::/48"));
  EXPECT_TRUE(list.admits(ip("fd77:1::1")));
  EXPECT_FALSE(list.admits(ip("fd77:0:1::1")));
  EXPECT_TRUE(list.admits(ip("fd77::1")));
  EXPECT_FALSE(list.admits(ip("fd77:0:0:5::8")));
  EXPECT_TRUE(list.admits(ip("fd77:0:0:5::9")));
  EXPECT_FALSE(list.admits(ip("fd78::1")));
}

// proves: AC-1
TEST(AccessList, OfTwoEqualPrefixesTheDenyingOneDecides) {
  for (const bool allow_first : {true, false}) {
    AccessList list;
    if (allow_first) list.allow(prefix("10.0.0.0/24"));
    list.deny(prefix("10.0.0.0/24"));
    if (!allow_first) list.allow(prefix("10.0.0.0/24"));
    EXPECT_FALSE(list.admits(ip("10.0.0.7"))) << allow_first;
  }
}

// proves: AC-1
TEST(AccessList, AMappedIpv4AddressIsTreatedAsIpv4) {
  AccessList list;
  list.deny(prefix("10.0.0.0/8"));
  list.deny(prefix("::ffff:172.16.0.0/108"));
  EXPECT_FALSE(list.admits(ip("::ffff:10.0.0.1")));
  EXPECT_FALSE(list.admits(ip("172.31.0.1")));
  EXPECT_FALSE(list.admits(ip("::ffff:172.31.0.1")));
  EXPECT_TRUE(list.admits(ip("172.32.0.1")));
}

// proves: AC-1
TEST(AccessList, ALinkLocalAddressMatchesOnEveryLink) {
  AccessList list;
  list.allow(prefix("fe80::/10"));
  list.deny(prefix("fe80::9"));
  EXPECT_TRUE(list.admits(ip("fe80::1").with_zone(3)));
  EXPECT_FALSE(list.admits(ip("fe80::9").with_zone(3)));
  EXPECT_FALSE(list.admits(ip("fe80::9")));
}

// Compares with a separate check of every rule.
// proves: AC-1
TEST(AccessList, AgreesWithCheckingEveryRule) {
  constexpr std::uint64_t kSeed = 11;
  Rng rng(kSeed);
  for (int round = 0; round < 300; ++round) {
    AccessList list;
    struct Rule {
      IpPrefix prefix;
      bool allows;
    };
    std::vector<Rule> rules;
    const std::uint64_t n = rng.next() % 12;
    for (std::uint64_t i = 0; i < n; ++i) {
      const auto length = static_cast<std::uint8_t>(28 + rng.next() % 5);
      const auto base = static_cast<std::uint32_t>(0x0a000000 + rng.next() % 8);
      const Rule r{{IpAddress::v4(base), length}, rng.next() % 2 == 0};
      rules.push_back(r);
      if (r.allows) {
        list.allow(r.prefix);
      } else {
        list.deny(r.prefix);
      }
    }
    for (std::uint32_t low = 0; low < 12; ++low) {
      const IpAddress who = IpAddress::v4(0x0a000000 + low);
      bool any_allows = false, admitted = true, found = false;
      int longest = -1;
      for (const Rule& r : rules) {
        any_allows = any_allows || r.allows;
        if (!r.prefix.contains(who) || r.prefix.length < longest) continue;
        admitted = r.prefix.length == longest ? admitted && r.allows : r.allows;
        longest = r.prefix.length;
        found = true;
      }
      if (!found) admitted = !any_allows;
      ASSERT_EQ(list.admits(who), admitted) << "seed " << kSeed << " round " << round;
    }
  }
}

}  // namespace
}  // namespace urnic
