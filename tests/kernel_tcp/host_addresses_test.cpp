// The kernel's information about this machine's addresses; the loopback address exists everywhere.
#include "kernel_tcp/host_addresses.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace urnic::kernel_tcp {
namespace {

TEST(HostAddresses, EachAddressHasItsPrefixLength) {
  const auto all = host_prefixes();
  ASSERT_TRUE(all.ok());
  const IpPrefix loopback = *IpPrefix::parse("127.0.0.1/8");
  EXPECT_NE(std::find(all->begin(), all->end(), loopback), all->end());
  for (const IpPrefix& p : *all) {
    EXPECT_LE(p.length, p.address.bits()) << p.to_string();
    if (p.address == *IpAddress::parse("::1")) {
      EXPECT_EQ(p.length, 128);
    }
  }
}

TEST(HostAddresses, EachAddressIsListedOnce) {
  const auto all = host_addresses();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(std::count(all->begin(), all->end(), *IpAddress::parse("127.0.0.1")), 1);
}

TEST(HostAddresses, ALoopbackAddressReachesOnlyLoopback) {
  const IpAddress own = *IpAddress::parse("127.0.0.1");
  EXPECT_EQ(why_no_way(own, *IpAddress::parse("127.0.0.2")), 0);
  EXPECT_NE(why_no_way(own, *IpAddress::parse("192.0.2.1")), 0);
  EXPECT_EQ(why_no_way(own, *IpAddress::parse("::1")), ENETUNREACH);
}

TEST(HostAddresses, AGroupAddressIsNotAHostAddress) {
  EXPECT_TRUE(is_host_address(*IpAddress::parse("127.0.0.1")));
  for (const char* group : {"224.0.0.5", "255.255.255.255", "ff02::1", "0.0.0.0"}) {
    EXPECT_FALSE(is_host_address(*IpAddress::parse(group))) << group;
  }
}

}  // namespace
}  // namespace urnic::kernel_tcp
