// The headers of a RoCEv2 datagram that is carried by a socket: parsed and removed from outgoing
// frames, built for received ones. A port may not use the protocol folders, and needs only offsets.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/ip_address.h"

namespace urnic::port {

inline constexpr std::uint16_t kRocePort = 4791;
// The longest headers: Ethernet, IPv6 and UDP.
inline constexpr std::size_t kMostUdpHeaders = 14 + 40 + 8;

struct UdpDatagram {
  IpAddress source, destination;  // both of the same IP version
  std::uint16_t source_port = kRocePort;
  std::uint8_t traffic_class = 0;   // type of service
  std::uint8_t identification = 0;  // its ICRC is made for this one; the header has 0
  std::uint32_t payload = 0;        // offset in the frame
  std::uint32_t length = 0;         // payload bytes
};

// Parses a whole contiguous frame. Returns nothing if a socket bound to our port cannot send it
// unchanged: another protocol or port, options, a fragment, an identification, inconsistent
// lengths.
std::optional<UdpDatagram> parse_udp_frame(ByteView frame);

// Writes the headers of a frame before `payload`, where there must be room for kMostUdpHeaders.
// Uses source, destination, source_port, traffic_class and length. Returns the number of bytes.
std::size_t write_udp_headers(const UdpDatagram&, const std::uint8_t (&mac)[6],
                              std::uint8_t* payload);

}  // namespace urnic::port
