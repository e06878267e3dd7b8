// RoCE over the kernel's UDP where a route has a smaller MTU than its interface, in a network
// namespace of its own: the packets of a connection fit the route at either end, and Modify QP
// refuses a path MTU that does not.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "device/udp_addresses.h"
#include "tests/device/roce_ends.h"
#include "tests/port/netns_check.h"
#include "tests/support/link_local.h"

namespace urnic::test {
namespace {

constexpr std::uint32_t kBytes = 20000;

// Two own addresses. Packets to the second may have 1400 bytes, those to the first 9000.
bool make_routes() {
  return std::system(
             "(ip addr add 10.9.0.1/32 dev lo && ip addr add 10.9.0.2/32 dev lo &&"
             " ip route replace table local local 10.9.0.2 dev lo mtu 1400) 2> /dev/null") == 0;
}

Settings settings_of(int end, const Settings& more = {}) {
  Settings s = more;
  s["port"] = "udp:bind=10.9.0." + std::to_string(end + 1);
  s["transport"] = "roce";
  s["stat"] = "off";
  return s;
}

// The end `from` connects to the other one and writes. Returns what is wrong.
std::string connect_from(int from) {
  if (!make_routes()) return "cannot make the routes";
  RoceEnd ours(settings_of(from)), theirs(settings_of(1 - from));
  if (!ours.device || !theirs.device) return "no device";
  if (ours.device.info().mtu != 9000) return "the port does not have the MTU of its interface";
  QueuePair a = ours.make(), b = theirs.make();
  auto listener = theirs.device.listen(7000);
  if (!listener) return listener.error().message;
  const std::string there = "10.9.0." + std::to_string(2 - from) + ":7000";
  if (auto ok = a.connect_start(there); !ok) return ok.error().message;
  auto request = listener->next(20'000);
  if (!request) return request.error().message;
  if (auto ok = request->accept(b); !ok) return ok.error().message;
  if (!ours.next(EventKind::established)) return "not established";
  for (const QueuePair* qp : {&a, &b}) {
    if (qp->attributes().path_mtu != 1024u) return "another path MTU than 1024";
  }
  const Sge sge = ours.sge(0, kBytes);
  SendRequest r;
  r.opcode = Opcode::write;
  r.sges = {&sge, 1};
  r.remote_address = theirs.at(0);
  r.rkey = theirs.mr.rkey();
  theirs.in_order();
  if (auto ok = a.post_send(r); !ok) return ok.error().message;
  if (ours.one().status != WcStatus::success) return "the write has failed";
  theirs.in_order();
  return std::memcmp(ours.memory.data(), theirs.memory.data(), kBytes) == 0 ? "" : "other bytes";
}

TEST(RouteMtu, AConnectionOverANarrowRouteCarriesData) {
  RUN_IN_NETWORK_NAMESPACE([] { return connect_from(0); });
}

TEST(RouteMtu, AListenerWithANarrowRouteToThePeerMakesItUseSmallerPackets) {
  RUN_IN_NETWORK_NAMESPACE([] { return connect_from(1); });
}

// The device's own addresses have no zones; the kernel needs them.
TEST(RouteMtu, TheRouteBetweenLinkLocalAddressesIsThatOfTheirInterface) {
  const auto body = []() -> std::string {
    if (!add_address("lo", "fe80::1")) {
      std::ifstream off("/proc/sys/net/ipv6/conf/lo/disable_ipv6");
      return off.get() == '0' ? "no address of version 6 to be had" : "";
    }
    if (std::system("ip -6 route add fe80::2 dev lo mtu 1300") != 0) return "cannot make the route";
    const auto mtu = device::route_mtus_of_udp_port("udp")(*IpAddress::parse("fe80::1"),
                                                           *IpAddress::parse("fe80::2"));
    return mtu == 1300u ? "" : std::to_string(mtu.value_or(0));
  };
  RUN_IN_NETWORK_NAMESPACE(body);
}

TEST(RouteMtu, ModifyRefusesAPathMtuThatTheRouteCannotCarryAndLogsWhy) {
  const std::string log = ::testing::TempDir() + "urnic-route-mtu-" + std::to_string(getpid());
  const auto body = [&]() -> std::string {
    if (!make_routes()) return "cannot make the routes";
    RoceEnd end(settings_of(0, {{"log", "warn"}, {"log_file", log}}));
    if (!end.device) return "no device";
    QueuePair qp = end.make();
    Agreed agreed;
    agreed.network = "10.9.0.";
    agreed.path_mtu = 2048;
    if (!qp.modify(QpState::init, agreed.to_init())) return "not in init";
    const auto refused = qp.modify(QpState::rtr, agreed.to_rtr(0, 77));
    if (refused) return "2048 over 1400";
    if (refused.error().code != Errc::invalid_argument) return refused.error().message;
    agreed.path_mtu = 1024;
    if (auto ok = qp.modify(QpState::rtr, agreed.to_rtr(0, 77)); !ok) return ok.error().message;
    qp = QueuePair();
    end = RoceEnd();  // writes the log
    std::ifstream file(log);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto line = text.find("path_mtu: packets would be longer than the IP MTU 1400 of the " +
                                std::string("route to 10.9.0.2"));
    return line != std::string::npos ? "" : "log: " + text;
  };
  RUN_IN_NETWORK_NAMESPACE(body);
  std::filesystem::remove(log);
}

}  // namespace
}  // namespace urnic::test
