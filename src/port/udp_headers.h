// The headers in front of a RoCEv2 datagram that a socket carries: taken off what is sent, made for
// what was received. A port may not use the protocol folders, and needs no more than offsets.
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
// Ethernet, IPv6 and UDP: the most that stands in front.
inline constexpr std::size_t kMostUdpHeaders = 14 + 40 + 8;

struct UdpDatagram {
  IpAddress source, destination;  // of one version
  std::uint16_t source_port = kRocePort;
  std::uint8_t traffic_class = 0;   // type of service
  std::uint8_t identification = 0;  // that its ICRC is right for; the header has 0
  std::uint32_t payload = 0;        // its offset in the frame
  std::uint32_t length = 0;         // its bytes
};

// Of a whole frame in one piece. Nothing where a socket bound to our port could not send it as it
// stands: another protocol or port, options, a fragment, an identification, lengths that disagree.
std::optional<UdpDatagram> parse_udp_frame(ByteView frame);

// A frame around a payload: source, destination, source_port, traffic_class and length are used.
// Written in front of `payload`, where there is room for kMostUdpHeaders. Returns how many bytes.
std::size_t write_udp_headers(const UdpDatagram&, const std::uint8_t (&mac)[6],
                              std::uint8_t* payload);

}  // namespace urnic::port
