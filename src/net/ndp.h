// IPv6 neighbour discovery messages (RFC 4861, 4.3 and 4.4), their source and target link-layer
// address options for Ethernet (4.6.1; RFC 2464, 6), and the listener report that makes snooping
// switches forward solicited-node multicast (RFC 3810).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/ip_address.h"
#include "net/icmp.h"

namespace urnic::net {

inline constexpr std::size_t kNdFixed = 24;
inline constexpr std::size_t kNdWithOption = kNdFixed + 8;
inline constexpr std::uint8_t kNdHopLimit = 255;

struct NdMessage {
  std::uint8_t type = kIcmp6NeighbourSolicitation;
  bool router = false, solicited = false, override_entry = false;  // in advertisements
  IpAddress target = IpAddress::any_v6();
  // The source (solicitation) or target (advertisement) link-layer address, if present.
  std::optional<MacAddress> link_layer;
};

// Parses a message whose checksum has been verified. nullopt if the message itself violates RFC
// 4861 7.1.1 or 7.1.2: length, code, multicast target, an option of length zero.
std::optional<NdMessage> parse_nd(ByteView message);

// Writes the message with its checksum to `dst` (>= kNdWithOption); returns its length.
std::size_t emit_nd(const NdMessage& m, const IpAddress& src, const IpAddress& dst,
                    std::uint8_t* out);

// An MLDv2 report (type 143) with an "exclude nothing" record for each group, i.e. a join. Writes
// the hop-by-hop header with router alert and the report, and returns the length of both. `out`
// needs mld_report_size(groups.size()) bytes. The destination is ff02::16.
constexpr std::size_t mld_report_size(std::size_t groups) {
  return 8 + 8 + 20 * groups;
}
std::size_t emit_mld_report(std::span<const IpAddress> groups, const IpAddress& src,
                            std::uint8_t* out);
IpAddress mld_routers();  // ff02::16
inline constexpr std::uint8_t kIcmp6MldQuery = 130;

}  // namespace urnic::net
