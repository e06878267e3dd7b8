// ICMP (RFC 792) and ICMPv6 (RFC 4443): echo, and errors about our own TCP segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/ip_address.h"

namespace urnic::net {

inline constexpr std::size_t kIcmpHeader = 8;

inline constexpr std::uint8_t kIcmpEchoReply = 0;
inline constexpr std::uint8_t kIcmpUnreachable = 3;
inline constexpr std::uint8_t kIcmpEchoRequest = 8;
inline constexpr std::uint8_t kIcmpTimeExceeded = 11;
inline constexpr std::uint8_t kIcmpParameterProblem = 12;

inline constexpr std::uint8_t kIcmp6Unreachable = 1;
inline constexpr std::uint8_t kIcmp6PacketTooBig = 2;
inline constexpr std::uint8_t kIcmp6TimeExceeded = 3;
inline constexpr std::uint8_t kIcmp6ParameterProblem = 4;
inline constexpr std::uint8_t kIcmp6EchoRequest = 128;
inline constexpr std::uint8_t kIcmp6EchoReply = 129;
inline constexpr std::uint8_t kIcmp6RouterSolicitation = 133;
inline constexpr std::uint8_t kIcmp6RouterAdvertisement = 134;
inline constexpr std::uint8_t kIcmp6NeighbourSolicitation = 135;
inline constexpr std::uint8_t kIcmp6NeighbourAdvertisement = 136;
inline constexpr std::uint8_t kIcmp6Redirect = 137;

// True if the checksum of a whole ICMP message is right. `pseudo` is 0 for ICMP, and the
// pseudo-header sum for ICMPv6.
bool icmp_checksum_ok(ByteView message, std::uint32_t pseudo);
// Sets the checksum field of a whole message (>= 4 bytes).
void set_icmp_checksum(MutBytes message, std::uint32_t pseudo);

// An ICMP error that quotes a TCP segment of ours. It may be forged by anyone, so TCP accepts it
// only if `seq` is in flight (E-18; RFC 5927).
struct IcmpError {
  enum class Kind : std::uint8_t { PacketTooBig, Unreachable, TimeExceeded, ParameterProblem };
  Kind kind = Kind::Unreachable;
  // RFC 1122 4.2.3.9 calls these errors hard (no such protocol or port); RFC 5461 explains why an
  // established connection should ignore that.
  bool hard = false;
  std::uint8_t type = 0, code = 0;  // as received
  std::uint32_t mtu = 0;  // PacketTooBig: largest datagram, >= 68 or, for version 6, >= 1280
  // The quoted segment: `local` sent it to `remote`.
  SocketAddress local, remote;
  std::uint32_t seq = 0;
};

// Parses a message whose checksum has been verified. nullopt for other types, and if the quote is
// not a TCP segment with its first 8 bytes. For an IPv4 "fragmentation needed" without an MTU
// (before RFC 1191), uses the next plateau below the quoted length.
std::optional<IcmpError> parse_icmp_error(ByteView message, bool v6);

}  // namespace urnic::net
