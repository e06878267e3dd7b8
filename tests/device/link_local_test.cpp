// Link-local addresses of IPv6 and their zones through the public API, over the kernel's TCP and
// UDP, in a network namespace of its own.
#include <gtest/gtest.h>
#include <net/if.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "support/device_end.h"
#include "tests/port/netns_check.h"
#include "tests/support/link_local.h"
#include "urnic/urnic.h"

namespace urnic {
namespace {

using test::add_address;

const std::string kLink = "%" + std::to_string(if_nametoindex("lo"));

Config config(bool roce) {
  Config c;
  (void)c.set("stat", "off");
  (void)c.set("port", roce ? "udp" : "tcp");
  if (roce) (void)c.set("transport", "roce");
  return c;
}

// Empty, or the first check that failed.
std::string asked(Device& d) {
  auto own = d.addresses();
  if (!own) return own.error().message;
  if (std::count(own->begin(), own->end(), "fe80::1" + kLink) != 1) return "addresses()";
  for (const char* has : {"fe80::1%lo", "fe80::2%lo"}) {
    if (!d.has_address(has)) return std::string("has_address ") + has;
  }
  for (const char* not_so : {"fe80::9%lo", "fe80::1%77", "fe80::1%nothing", "::1%lo"}) {
    if (d.has_address(not_so)) return std::string("has_address ") + not_so;
  }
  auto source = d.source_for("fe80::2%lo");
  if (!source) return source.error().message;
  if (*source != "fe80::2" + kLink) return "source_for() says " + *source;
  if (d.source_for("fe80::2")) return "source_for() of no link";
  if (d.source_for("fe80::2%77")) return "source_for() of nobody's link";
  if (auto near = d.prefix_length_for("fe80::2%lo"); !near || *near != 128) return "not own";
  auto bound = d.bind("[fe80::1%lo]:0");
  return bound ? "" : bound.error().message;
}

std::string connected(bool roce) {
  if (!add_address("lo", "fe80::1") || !add_address("lo", "fe80::2")) {
    std::ifstream off("/proc/sys/net/ipv6/conf/lo/disable_ipv6");
    return off.get() == '0' ? "no address of version 6 to be had" : "";
  }
  test::DeviceEnd end(config(roce));
  if (!end.device) return "no device";
  if (std::string wrong = asked(end.device); !wrong.empty()) return wrong;
  auto at = end.device.bind("[fe80::1%lo]:0");
  if (!at) return at.error().message;
  const std::string port = ":" + std::to_string(at->port());
  auto listener = end.device.listen(*at);
  auto from = end.device.bind("[fe80::2%lo]:0");
  if (!listener || !from) return "no listener, or nowhere to connect from";
  QpOptions o;
  o.send_cq = o.receive_cq = end.cq;
  o.events = end.events;
  auto ours = end.device.create_qp(end.pd, o), theirs = end.device.create_qp(end.pd, o);
  if (ours->connect_start("[fe80::1]" + port)) return "connects without the interface";
  if (ours->connect_start("[fe80::1%77]" + port)) return "connects by nobody's interface";
  ConnectionOptions options;
  options.source = &*from;
  auto started = ours->connect_start("[fe80::1%lo]" + port, options);
  if (!started) return started.error().message;
  auto request = listener->next(10'000);
  if (!request) return request.error().message;
  if (request->peer().find("fe80::2") == std::string::npos) return "peer " + request->peer();
  auto accepted = request->accept(*theirs);
  return accepted ? "" : accepted.error().message;
}

TEST(LinkLocal, ADeviceOfTheKernelsTcpHasSuchAddresses) {
  RUN_IN_NETWORK_NAMESPACE([] { return connected(false); });
}

TEST(LinkLocal, ADeviceOfTheKernelsUdpHasSuchAddresses) {
  RUN_IN_NETWORK_NAMESPACE([] { return connected(true); });
}

}  // namespace
}  // namespace urnic
