#include "device/udp_addresses.h"

#include <cstring>

#include "device/port_stack.h"
#include "port/kinds.h"
#include "sockets/host_addresses.h"

namespace urnic::engine {
namespace {

std::string alone(const IpAddress& a) {
  return a.to_string() + (a.is_v6() ? "/128" : "/32");
}

Error unavailable(std::string_view spec, const std::string& why) {
  return why_unavailable("port = " + std::string(spec) + ": " + why);
}

}  // namespace

Result<std::vector<std::string>> addresses_of_udp_port(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  port::Args args(colon == std::string_view::npos ? "" : spec.substr(colon + 1));
  const auto read = port::read_udp_args(args);
  if (!read.ok()) return unavailable(spec, read.error());
  if (read->bind) return std::vector<std::string>{alone(*read->bind)};
  const auto all = sockets::host_addresses();
  if (!all.ok()) return unavailable(spec, std::strerror(all.error()));
  std::vector<std::string> own;
  for (const IpAddress& a : *all) {
    if (!a.is_link_local()) own.push_back(alone(a));
  }
  if (own.empty()) return unavailable(spec, "this machine has no address that is up");
  return own;
}

}  // namespace urnic::engine
