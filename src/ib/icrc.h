// ICRC of RoCEv2: a CRC-32 over what does not change on the way (IB-1). Covered are eight bytes of
// ones in the place of an InfiniBand LRH, the IP header, the UDP header and the packet from its BTH
// through its pad; what routers may change is taken as ones (IPv4: type of service, time to live,
// header checksum; IPv6: traffic class, flow label, hop limit; UDP checksum; byte 4 of the BTH).
// Stored behind the pad, least significant byte first.
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

// IP and UDP header of a datagram for whom only a socket knows them. Lengths come from the packet.
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
// Them as bytes, with zeros where the ICRC does not look: not for the wire. `packet`: bytes of
// the packet, ICRC included.
IpUdpHeaders pseudo_headers(const DatagramFields&, std::size_t packet);

// `ip_udp`: IP header (IPv4 with any options, or the 40 bytes of IPv6) and UDP header, as on the
// wire or as pseudo_headers() makes them. `covered`: from the BTH, which is whole, through the pad.
// Where it lies behind `ip_udp`, both are passed over once.
std::uint32_t icrc(ByteView ip_udp, ByteView covered);

// The same piece by piece, for who writes a datagram from its beginning on.
class RunningIcrc {
 public:
  // From the IP header, without options, through at least the first eight bytes of the BTH.
  RunningIcrc(ByteView headers, bool v6);
  // From what state() was, of the same bytes.
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

// Of a whole packet, ICRC included; at least kBthBytes + kIcrcBytes.
bool icrc_good(ByteView ip_udp, ByteView packet);
// The same where `ip_udp` has IPv4 with a zero identification because a socket does not tell it: is
// there one with which the ICRC is right? There is for a broken packet too, once in 2^16. Bytes
// that a router may not change but the identification must be known.
bool icrc_good_for_some_identification(ByteView ip_udp, ByteView packet);
// Writes its last four bytes.
void seal(ByteView ip_udp, MutBytes packet);

}  // namespace urnic::ib
