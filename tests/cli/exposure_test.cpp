#include "cli/transfer/exposure.h"

#include <gmock/gmock.h>

namespace urnic::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Config config(const std::string& port, const std::string& allow = "") {
  Config c;
  EXPECT_TRUE(c.set("port", port).ok());
  EXPECT_TRUE(c.set("allow", allow).ok());
  return c;
}

// proves: AC-9
TEST(Exposure, LocalPortsAreReachableFromThisMachineOnly) {
  for (const char* port : {"memif:socket=/tmp/x", "mem:name=x", "dgram:socket=/tmp/x",
                           "tcp:bind=127.0.0.1", "tcp:bind=127.1.2.3", "tcp:bind=::1",
                           "udp:bind=127.0.0.1,mtu=5000", "tcp:bind=::ffff:127.0.0.1"}) {
    EXPECT_EQ(reachable_at(config(port), "10.77.0.1/24"), "") << port;
    EXPECT_EQ(exposure_warning(config(port), "10.77.0.1/24", false), "") << port;
  }
}

// proves: AC-9
TEST(Exposure, AddressesReachableFromANetworkAreListed) {
  EXPECT_EQ(reachable_at(config("tcp"), ""), "every address of this machine");
  EXPECT_EQ(reachable_at(config("udp"), ""), "every address of this machine");
  EXPECT_EQ(reachable_at(config("tcp:bind=0.0.0.0"), ""), "every address of this machine");
  EXPECT_EQ(reachable_at(config("tcp:bind=::"), ""), "every address of this machine");
  EXPECT_EQ(reachable_at(config("tcp:align=off,bind=192.168.7.1"), ""), "192.168.7.1");
  EXPECT_EQ(reachable_at(config("tcp:bind=fe80::1%7"), ""), "fe80::1%7");
  EXPECT_EQ(reachable_at(config("tap:name=urnic0"), "192.168.7.1/24"), "192.168.7.1/24");
  EXPECT_EQ(reachable_at(config("dpdk:device=0"), "192.168.7.1/24"), "192.168.7.1/24");
}

// proves: AC-9
TEST(Exposure, AllowingOnlyThisMachineMakesItUnreachableForOthers) {
  EXPECT_EQ(reachable_at(config("tcp", "127.0.0.0/8,::1"), ""), "");
  EXPECT_NE(reachable_at(config("tcp", "127.0.0.0/8,10.0.0.0/8"), ""), "");
  EXPECT_NE(reachable_at(config("tcp", "126.0.0.0/7"), ""), "");
  EXPECT_NE(reachable_at(config("tcp", "::/127"), ""), "");
}

// proves: AC-9
TEST(Exposure, TheWarningIsOneLineAndNamesTheProtection) {
  const std::string bare = exposure_warning(config("tcp"), "", false);
  EXPECT_THAT(bare,
              AllOf(HasSubstr("any host that can reach every address of this machine can write"),
                    HasSubstr("traffic is not encrypted"), HasSubstr("--token-file"),
                    HasSubstr("docs/access.md"), Not(HasSubstr("\n"))));
  const std::string kept = exposure_warning(config("tcp", "10.0.0.0/8"), "", true);
  EXPECT_THAT(kept, AllOf(HasSubstr("knows the token"), HasSubstr("in allow"),
                          Not(HasSubstr("--token-file"))));
}

}  // namespace
}  // namespace urnic::cli
