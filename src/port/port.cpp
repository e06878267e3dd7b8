// Opening a port by name (E-34).
#include "port/port.h"

#include <array>
#include <string>
#include <string_view>

#include "port/kinds.h"
#include "port/plugin.h"

namespace urnic::port {
namespace {

constexpr std::array<const urnic_port_ops*, 4> kBuiltIn = {&kMemoryPortOps, &kMemifPortOps,
                                                           &kTapPortOps, &kDgramPortOps};

std::string kind_names() {
  std::string all;
  for (const urnic_port_ops* ops : kBuiltIn) all += std::string(ops->kind) + ", ";
  return all + "dpdk";
}

// A kind becomes part of a file name, so it must not be able to leave its folder.
bool plausible_kind(std::string_view kind) {
  if (kind.empty() || kind.size() > 32) return false;
  for (char c : kind) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!fine) return false;
  }
  return true;
}

Outcome<const urnic_port_ops*, std::string> find_kind(std::string_view kind) {
  for (const urnic_port_ops* ops : kBuiltIn) {
    if (kind == ops->kind) return ops;
  }
  if (!plausible_kind(kind)) {
    return fail("'" + std::string(kind) + "' is not a kind of port; kinds: " + kind_names());
  }
  auto plugin = load_plugin(kind);
  if (plugin.ok()) return plugin.value();
  return fail("port kind '" + std::string(kind) + "': " + plugin.error() +
              "; kinds: " + kind_names());
}

}  // namespace

Outcome<Port, std::string> Port::open(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  const std::string args(colon == std::string_view::npos ? "" : spec.substr(colon + 1));
  if (kind.empty()) {
    return fail(std::string("a port is named kind:key=value,...; kinds: ") + kind_names());
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
