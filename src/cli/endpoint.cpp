#include "cli/endpoint.h"

#include <charconv>

#include "cli/runtime.h"
#include "port/host_name.h"
#include "port/zone_name.h"

namespace urnic::cli {
namespace {

constexpr int kLookUpMs = 10'000;

}  // namespace

std::string Endpoint::to_string() const {
  return ip ? SocketAddress{*ip, port}.to_string() : host + ":" + std::to_string(port);
}

std::optional<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  const std::string numbered = port::number_zone(text);
  if (const auto both = SocketAddress::parse_zoned(numbered)) {
    if (both->port == 0) return std::nullopt;
    return Endpoint{both->ip.to_string(), both->ip, both->port};
  }
  std::string_view bare = numbered;
  if (bare.size() > 2 && bare.front() == '[' && bare.back() == ']') {
    bare = bare.substr(1, bare.size() - 2);
  }
  if (const auto ip = IpAddress::parse_zoned(bare)) {
    return Endpoint{ip->to_string(), ip, default_port};
  }
  Endpoint named;
  named.port = default_port;
  const std::size_t colon = text.rfind(':');
  named.host = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    const std::string_view number = text.substr(colon + 1);
    const auto [end, wrong] =
        std::from_chars(number.data(), number.data() + number.size(), named.port);
    if (wrong != std::errc() || end != number.data() + number.size() || named.port == 0) {
      return std::nullopt;
    }
  }
  if (!port::is_host_name(named.host)) return std::nullopt;
  return named;
}

Outcome<std::vector<std::string>, std::string> places_of(const Endpoint& endpoint) {
  if (endpoint.ip) return std::vector<std::string>{endpoint.to_string()};
  auto found = port::addresses_of_host(endpoint.host, kLookUpMs, stop_requested);
  if (!found.ok()) return fail(found.error());
  std::vector<std::string> places;
  for (const IpAddress& ip : *found) places.push_back(SocketAddress{ip, endpoint.port}.to_string());
  return places;
}

std::vector<std::string> reachable(Device& device, std::vector<std::string> places) {
  if (places.size() < 2) return places;
  std::vector<std::string> out;
  for (const std::string& place : places) {
    const auto at = SocketAddress::parse_zoned(place);
    if (at && device.source_for(at->ip.to_string())) out.push_back(place);
  }
  return out.empty() ? places : out;
}

}  // namespace urnic::cli
