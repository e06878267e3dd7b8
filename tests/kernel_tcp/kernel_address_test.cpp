// Conversion of addresses to the format of the kernel's calls, and back.
#include "kernel_tcp/kernel_address.h"

#include <gtest/gtest.h>

namespace urnic::kernel_tcp {
namespace {

TEST(KernelAddress, AZoneBecomesTheScopeId) {
  const SocketAddress own = *SocketAddress::parse_zoned("[fe80::1:2%7]:80");
  KernelAddress a;
  ASSERT_EQ(to_kernel(own, &a), sizeof a.v6);
  EXPECT_EQ(a.v6.sin6_scope_id, 7u);
  const IpAddress plain = *IpAddress::parse("fe80::1:2");
  EXPECT_EQ(std::memcmp(&a.v6.sin6_addr, plain.bytes().data(), 16), 0);
  EXPECT_EQ(from_kernel(a.any), own);
}

TEST(KernelAddress, OtherAddressesHaveNoScope) {
  for (const char* text : {"[fd77::1]:80", "[::1]:80", "10.0.0.1:80"}) {
    const SocketAddress own = *SocketAddress::parse(text);
    KernelAddress a;
    to_kernel(own, &a);
    if (own.ip.is_v6()) {
      EXPECT_EQ(a.v6.sin6_scope_id, 0u);
      a.v6.sin6_scope_id = 3;
    }
    EXPECT_EQ(from_kernel(a.any), own) << text;
  }
}

}  // namespace
}  // namespace urnic::kernel_tcp
