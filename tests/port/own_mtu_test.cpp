// The IP MTUs that the kernel reports, in a network namespace with routes of different MTUs.
#include "port/own_mtu.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/port/netns_check.h"
#include "tests/support/link_local.h"

namespace urnic::port {
namespace {

bool run(const std::string& command) {
  return std::system((command + " 2> /dev/null").c_str()) == 0;
}

std::string wrong_between(const IpAddress& own, const IpAddress& to, std::uint32_t mtu) {
  const auto got = route_mtu(own, to);
  if (got.value_or(0) == mtu) return "";
  return own.to_string() + " to " + to.to_string() + ": " + std::to_string(got.value_or(0)) +
         " instead of " + std::to_string(mtu) + "; ";
}

IpAddress ip(const char* text) {
  return *IpAddress::parse(text);
}

TEST(RouteMtu, IsThatOfTheRouteAndNotOfTheInterface) {
  const auto body = []() -> std::string {
    if (!run("ip link set lo mtu 9000 && ip addr add 10.9.0.1/32 dev lo &&"
             "ip route add 10.9.1.0/24 dev lo && ip route add 10.9.2.0/24 dev lo mtu 1400")) {
      return "cannot make the routes";
    }
    const IpAddress own = ip("10.9.0.1");
    if (route_mtu(own, ip("192.0.2.1"))) return "an MTU without a route";
    if (route_mtu(ip("10.9.0.7"), ip("10.9.1.1"))) return "an MTU from another's address";
    return wrong_between(own, ip("10.9.1.1"), 9000) + wrong_between(own, ip("10.9.2.1"), 1400);
  };
  RUN_IN_NETWORK_NAMESPACE(body);
}

TEST(RouteMtu, IsKnownForIpv6AndForLinkLocalAddresses) {
  const auto body = []() -> std::string {
    if (!test::add_address("lo", "fd09::1") || !test::add_address("lo", "fe80::1")) {
      std::ifstream off("/proc/sys/net/ipv6/conf/lo/disable_ipv6");
      return off.get() == '0' ? "no address of version 6 to be had" : "";
    }
    if (!run("ip link set lo mtu 9000 && ip -6 route add fd0a::/64 dev lo mtu 1400 &&"
             "ip -6 route add fe80::2 dev lo mtu 1300")) {
      return "cannot make the routes";
    }
    const std::uint32_t lo = if_nametoindex("lo");
    return wrong_between(ip("fd09::1"), ip("fd0a::1"), 1400) +
           wrong_between(ip("fe80::1").with_zone(lo), ip("fe80::2"), 1300);
  };
  RUN_IN_NETWORK_NAMESPACE(body);
}

}  // namespace
}  // namespace urnic::port
