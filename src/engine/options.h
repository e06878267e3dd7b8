// The options of an engine, as plain values (device/engine_options.h reads them from a Config).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "base/time.h"
#include "iwarp/options.h"
#include "roce/side.h"

namespace urnic::engine {

// Options of the wire, and those of iWARP.
struct Options : iwarp::Options {
  std::vector<std::string> addresses;  // "10.77.0.1/24"; empty: the default pair by port side
  std::string gateway;
  std::string mac;  // empty: derived from the first address
  std::uint32_t vlan = 0;
  std::uint32_t mtu = 0;  // IP MTU; 0: that of the port, at most 9000 except over memif
  bool rto_auto = true;   // rto_min by kind of port
  enum class OutOfOrder : std::uint8_t { Auto, Place, Store } out_of_order = OutOfOrder::Auto;
  Duration link_timeout = Duration::s(5);  // E-43; 0: a link that is down is never given up
  bool duplicate_address_detection = false;
  // Frames end in the kernel's UDP: no address resolution, and UDP is sent from this port. 0: off.
  std::uint16_t socket_port = 0;
  net::RouteMtu route_mtu;  // with socket_port: of the kernel's routes
  // The transports of the device: frames of another transport are dropped.
  bool speaks_iwarp = true, speaks_roce = false;
  roce::Options roce;  // its key comes from the seed
  // Used if neither the configuration nor the port has one. Empty: derived from the first address.
  std::optional<MacAddress> own_mac;
};

// Fills in defaults that depend on the kind of port ("memif", "tap", ...).
void settle_by_port_kind(Options* options, std::string_view kind);

}  // namespace urnic::engine
