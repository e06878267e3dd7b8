// What the kernel says of this machine's addresses; that of loopback is everywhere.
#include "sockets/host_addresses.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace urnic::sockets {
namespace {

TEST(HostAddresses, EachHasTheLengthOfItsNetwork) {
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

TEST(HostAddresses, EachIsThereOnce) {
  const auto all = host_addresses();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(std::count(all->begin(), all->end(), *IpAddress::parse("127.0.0.1")), 1);
}

}  // namespace
}  // namespace urnic::sockets
