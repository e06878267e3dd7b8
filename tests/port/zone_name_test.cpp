// Zones given by interface names; every machine has lo.
#include "port/zone_name.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include "port/host_name.h"
#include "port/port.h"

namespace urnic::port {
namespace {

const std::string kLo = std::to_string(if_nametoindex("lo"));

TEST(ZoneName, AnInterfaceNameIsReplacedByItsNumber) {
  EXPECT_EQ(number_zone("fe80::1%lo"), "fe80::1%" + kLo);
  EXPECT_EQ(number_zone("[fe80::1%lo]:80"), "[fe80::1%" + kLo + "]:80");
  for (const char* as_it_is : {"fe80::1", "[fe80::1]:80", "fe80::1%7", "fe80::1%no-such-one",
                               "10.0.0.1", "%", "", "[fe80::1]:80%lo", "[%]"}) {
    EXPECT_EQ(number_zone(as_it_is), as_it_is);
  }
}

TEST(ZoneName, AnAddressParsesWithAndWithoutAZone) {
  EXPECT_EQ(parse_with_zone("fe80::1%lo")->to_string(), "fe80::1%" + kLo);
  EXPECT_EQ(parse_with_zone("fe80::1%9")->to_string(), "fe80::1%9");
  EXPECT_EQ(parse_with_zone("fd77::1")->to_string(), "fd77::1");
  for (const char* none : {"fd77::1%lo", "10.0.0.1%lo", "fe80::1%no-such-one", "fe80::1%"}) {
    EXPECT_FALSE(parse_with_zone(none)) << none;
  }
}

TEST(ZoneName, APortCanBeBoundToAZone) {
  for (const std::string kind : {"tcp", "udp"}) {
    EXPECT_EQ(Port::check(kind + ":bind=fe80::1%lo"), "") << kind;
    EXPECT_NE(Port::check(kind + ":bind=fe80::1").find("needs its interface"), std::string::npos);
    EXPECT_NE(Port::check(kind + ":bind=fd77::1%lo").find("unicast IP address"), std::string::npos);
  }
}

TEST(ZoneName, AHostNameMayHaveAZone) {
  const auto found = addresses_of_host("fe80::1%lo", 20'000, [] { return false; });
  ASSERT_TRUE(found.ok()) << found.error();
  EXPECT_EQ(found->front().to_string(), "fe80::1%" + kLo);
}

}  // namespace
}  // namespace urnic::port
