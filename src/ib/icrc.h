// ICRC of RoCEv2: a CRC-32 over the fields that do not change on the way (IB-1). It covers eight
// bytes of ones in place of an InfiniBand LRH, the IP header, the UDP header, and the packet from
// its BTH through its pad. Fields that routers may change count as ones (IPv4: type of service,
// time to live, header checksum; IPv6: traffic class, flow label, hop limit; UDP checksum; byte 4
// of the BTH). It is stored after the pad, least significant byte first.
//
// Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/ip_address.h"
#include "ib/packet.h"

namespace urnic::ib {

// IP and UDP header fields of a datagram received from or sent to a socket. Lengths come from the
// packet.
struct DatagramFields {
  IpAddress source, destination;  // of one family
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = kUdpPort;
  std::uint16_t identification = 0;  // IPv4
  bool dont_fragment = true;         // IPv4
};

inline constexpr std::size_t kIpv4UdpBytes = 20 + 8, kIpv6UdpBytes = 40 + 8;
struct IpUdpHeaders {
  std::array<std::uint8_t, kIpv6UdpBytes> bytes{};
  std::size_t size = 0;
  ByteView view() const { return {bytes.data(), size}; }
};
// The headers as bytes, with zeros where the ICRC does not look: not for the wire. `packet`: bytes
// of the packet, ICRC included.
IpUdpHeaders pseudo_headers(const DatagramFields&, std::size_t packet);

// `ip_udp`: IP header (IPv4 with any options, or the 40 bytes of IPv6) and UDP header, as on the
// wire or from pseudo_headers(). `covered`: from the BTH, which must be complete, through the pad.
// If it follows `ip_udp` in memory, both are read in one pass.
std::uint32_t icrc(ByteView ip_udp, ByteView covered);

// The same piece by piece, for a datagram that is written from its beginning on.
class RunningIcrc {
 public:
  // From the IP header, without options, through at least the first eight bytes of the BTH.
  RunningIcrc(ByteView headers, bool v6);
  // Continues from a value of state().
  explicit RunningIcrc(std::uint32_t state) : state_(state) {}
  std::uint32_t state() const { return state_; }
  // Headers that have just been written, in words.
  void words(ByteView bytes) { state_ = crc32_update_words(state_, bytes); }
  void cover(ByteView bytes) {
    if (!bytes.empty()) state_ = crc32_update(state_, bytes);
  }
  void copy(std::uint8_t* to, ByteView bytes) { state_ = crc32_update_copy(state_, to, bytes); }
  std::uint32_t value() const { return crc32_finish(state_); }

 private:
  std::uint32_t state_;
};

// Checks a whole packet, ICRC included; at least kBthBytes + kIcrcBytes.
bool icrc_good(ByteView ip_udp, ByteView packet);
// The same if `ip_udp` is IPv4 with a zero identification because a socket does not report it: is
// there any identification for which the ICRC is correct? For a damaged packet there is one with
// probability 2^-16. All other bytes that a router may not change must be known.
bool icrc_good_for_some_identification(ByteView ip_udp, ByteView packet);
// Writes the last four bytes of the packet.
void seal(ByteView ip_udp, MutBytes packet);

}  // namespace urnic::ib
