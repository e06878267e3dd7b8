#include "device/udp_addresses.h"

#include <algorithm>
#include <cstring>

#include "device/port_stack.h"
#include "kernel_tcp/host_addresses.h"
#include "port/kinds.h"
#include "port/own_links.h"
#include "port/own_mtu.h"

namespace urnic::device {
namespace {

IpPrefix alone(const IpAddress& a) {
  return {a.without_zone(), static_cast<std::uint8_t>(a.bits())};
}

std::vector<IpPrefix> usable(const std::vector<IpAddress>& all) {
  std::vector<IpPrefix> own;
  for (const IpAddress& a : all) {
    // Two links may have the same address.
    const IpPrefix p = alone(a);
    if (std::find(own.begin(), own.end(), p) == own.end()) own.push_back(p);
  }
  return own;
}

Outcome<port::UdpArgs, std::string> read_args(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  port::Args args(colon == std::string_view::npos ? "" : spec.substr(colon + 1));
  return port::read_udp_args(args);
}

Error unavailable(std::string_view spec, const std::string& why) {
  return why_unavailable("port = " + std::string(spec) + ": " + why);
}

}  // namespace

Result<std::vector<std::string>> addresses_of_udp_port(std::string_view spec) {
  const auto read = read_args(spec);
  if (!read.ok()) return unavailable(spec, read.error());
  if (read->bind) return std::vector<std::string>{alone(*read->bind).to_string()};
  const auto all = kernel_tcp::host_addresses();
  if (!all.ok()) return unavailable(spec, std::strerror(all.error()));
  std::vector<std::string> own;
  for (const IpPrefix& p : usable(*all)) own.push_back(p.to_string());
  if (own.empty())
    return unavailable(spec, "this machine has no IP address on an interface that is up");
  return own;
}

bool has_addresses_of_machine(std::string_view udp_spec) {
  const auto read = read_args(udp_spec);
  return read.ok() && !read->bind;
}

std::vector<IpAddress> zoned_addresses_of_udp_port(std::string_view spec) {
  const auto read = read_args(spec);
  if (read.ok() && read->bind) return {*read->bind};
  const auto all = kernel_tcp::host_addresses();
  return all.ok() ? *all : std::vector<IpAddress>();
}

net::RouteMtu route_mtus_of_udp_port(std::string_view spec) {
  const auto read = read_args(spec);
  const port::OwnLinks all(read.ok() ? read->bind : std::nullopt);
  return [links = all](const IpAddress& own, const IpAddress& to) mutable {
    port::UdpDatagram d;
    d.source = own;
    d.destination = to;
    return port::route_mtu(own.with_zone(links.of(d)), to);
  };
}

std::vector<IpPrefix> udp_addresses_now() {
  const auto all = kernel_tcp::host_addresses();
  return all.ok() ? usable(*all) : std::vector<IpPrefix>();
}

}  // namespace urnic::device
