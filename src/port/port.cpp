// Opens a port by name (E-34).
#include "port/port.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "port/kinds.h"
#include "port/plugin.h"
#include "port/zone_name.h"

namespace urnic::port {
namespace {

struct BuiltIn {
  const urnic_port_ops* ops;
  std::string (*check)(Args&);
};
constexpr std::array<BuiltIn, 5> kBuiltIn = {{{&kMemoryPortOps, check_memory_args},
                                              {&kMemifPortOps, check_memif_args},
                                              {&kTapPortOps, check_tap_args},
                                              {&kDgramPortOps, check_dgram_args},
                                              {&kUdpPortOps, check_udp_args}}};
constexpr std::string_view kDpdk = "dpdk", kTcp = "tcp";

std::vector<std::string> kind_names() {
  std::vector<std::string> all;
  all.reserve(kBuiltIn.size() + 2);
  for (const BuiltIn& b : kBuiltIn) all.emplace_back(b.ops->kind);
  all.emplace_back(kDpdk);
  all.emplace_back(kTcp);
  return all;
}

std::string listed() {
  std::string all;
  for (const std::string& name : kind_names()) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::string unknown(std::string_view kind) {
  return "'" + std::string(kind) + "': unknown kind of port" + nearest_hint(kind, kind_names()) +
         "; kinds: " + listed();
}

// The kind becomes part of a file name, so it must not contain path separators.
bool plausible_kind(std::string_view kind) {
  if (kind.empty() || kind.size() > 32) return false;
  for (char c : kind) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!fine) return false;
  }
  return true;
}

Outcome<const urnic_port_ops*, std::string> find_kind(std::string_view kind) {
  for (const BuiltIn& b : kBuiltIn) {
    if (kind == b.ops->kind) return b.ops;
  }
  if (kind == kTcp) {
    return fail(std::string(
        "'tcp' is the kernel's TCP and carries no Ethernet frames: use another kind of port"));
  }
  if (!plausible_kind(kind)) return fail(unknown(kind));
  bool missing = false;
  auto plugin = load_plugin(kind, &missing);
  if (plugin.ok()) return plugin.value();
  if (missing && kind == kDpdk) {
    return fail(std::string(
        "liburnic-port-dpdk.so not found: install the package liburnic0 or build with "
        "-DURNIC_DPDK=ON (./quickstart does not), or set URNIC_PLUGIN_DIR to its folder"));
  }
  if (missing) return fail(unknown(kind) + "; for a plugin, set URNIC_PLUGIN_DIR to its folder");
  return fail("port kind '" + std::string(kind) + "': " + plugin.error());
}

}  // namespace

std::string Port::check(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  Args args(colon == std::string_view::npos ? "" : spec.substr(colon + 1));
  std::string wrong;
  if (kind == kTcp) {
    auto read = read_tcp_args(args);
    if (!read.ok()) wrong = read.error();
  } else if (kind != kDpdk) {
    const auto* known = std::find_if(kBuiltIn.begin(), kBuiltIn.end(),
                                     [&](const BuiltIn& b) { return kind == b.ops->kind; });
    if (known == kBuiltIn.end()) {
      // A third-party plugin checks its keys itself.
      auto found = find_kind(kind);
      return found.ok() ? std::string() : found.error();
    }
    wrong = known->check(args);
  }
  return wrong.empty() ? wrong : std::string(kind) + ": " + wrong;
}

Outcome<TcpArgs, std::string> read_tcp_args(Args& args) {
  TcpArgs t;
  t.align = args.on_off("align", true);
  const std::string bind = args.str("bind");
  if (std::string wrong = args.finish(); !wrong.empty()) return fail(wrong);
  if (bind.empty()) return t;
  t.bind = parse_with_zone(bind);
  if (!t.bind || t.bind->is_multicast())
    return fail("bind=" + bind + ": must be a unicast IP address");
  if (lacks_zone(*t.bind)) return fail("bind=" + bind + kLacksZone);
  return t;
}

Outcome<Port, std::string> Port::open(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  const std::string args(colon == std::string_view::npos ? "" : spec.substr(colon + 1));
  if (kind.empty()) {
    return fail("expected kind:key=value,...; kinds of ports: " + listed());
  }
  auto ops = find_kind(kind);
  if (!ops.ok()) return fail(ops.error());
  std::array<char, 512> err{};
  urnic_port* p = nullptr;
  if (ops.value()->open(args.c_str(), &p, err.data(), err.size()) != 0) {
    err.back() = '\0';
    return fail(std::string(kind) + ": " + err.data());
  }
  return Port(ops.value(), p);
}

}  // namespace urnic::port
