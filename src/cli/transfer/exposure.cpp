#include "cli/transfer/exposure.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "port/zone_name.h"

namespace urnic::cli {
namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    out.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

std::optional<IpAddress> bound_to(std::string_view options) {
  for (const std::string_view item : split(options)) {
    if (item.starts_with("bind=")) return port::parse_with_zone(item.substr(5));
  }
  return std::nullopt;
}

bool is_of_this_machine(const IpPrefix& p) {
  return p.network().unmapped().is_loopback() && p.length >= (p.address.is_v4() ? 8 : 104);
}

// True if `allow` admits this machine only.
bool admits_this_machine_alone(const Config& config) {
  const std::string allow = config.get("allow");
  const auto all = split(allow);
  return !all.empty() && std::all_of(all.begin(), all.end(), [](std::string_view text) {
    const auto p = IpPrefix::parse(text);
    return p && is_of_this_machine(*p);
  });
}

}  // namespace

std::string reachable_at(const Config& config, const std::string& addresses) {
  const std::string port = config.get("port");
  const std::string_view text = port;
  const std::string_view kind = text.substr(0, text.find(':'));
  const std::string_view options = kind.size() < text.size() ? text.substr(kind.size() + 1) : "";
  if (kind == "tap" || kind == "dpdk") return addresses;
  if (kind != "tcp" && kind != "udp") return {};
  if (admits_this_machine_alone(config)) return {};
  const auto bind = bound_to(options);
  if (!bind || bind->is_any()) return "every address of this machine";
  return bind->unmapped().is_loopback() ? std::string() : bind->to_string();
}

std::string exposure_warning(const Config& config, const std::string& addresses, bool token) {
  const std::string where = reachable_at(config, addresses);
  if (where.empty()) return {};
  std::string who = "any host that can reach ";
  if (token) {
    who = "any host that knows the token, or has seen it on the network, and can reach ";
  }
  who += where;
  if (!config.get("allow").empty()) who += " from an address in allow";
  return who + " can write files, and traffic is not encrypted; restrict access with " +
         (token ? "" : "--token-file, ") + "--allow, --read-only or a tunnel (docs/access.md)";
}

}  // namespace urnic::cli
