// The addresses and ports of rdma_cm: service ids contain the port, and 36 bytes precede the
// private data of a REQ and a SIDR REQ (IB-136).
//
//   0 version (0)   1 IP version (the first 4 bits)   2 source port (2)
//   4 source address (16)   20 destination address (16); IPv4 in the last four
//
// Values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/ip_address.h"
#include "ib_cm/messages.h"

namespace urnic::ib_cm {

inline constexpr std::size_t kIpHeaderBytes = 36;
// Bytes left for the consumer.
inline constexpr std::size_t kReqConsumer = kReqPrivate - kIpHeaderBytes;
inline constexpr std::size_t kSidrReqConsumer = kSidrReqPrivate - kIpHeaderBytes;

// Port spaces: bits 16..31 of a service id.
enum class PortSpace : std::uint16_t { Tcp = 0x0106, Udp = 0x0111, Ib = 0x013f };

constexpr std::uint64_t service_of(PortSpace space, std::uint16_t port) {
  return std::uint64_t{static_cast<std::uint16_t>(space)} << 16 | port;
}
// True if the service uses the 36 bytes; the data of other services is private to its users.
constexpr bool is_ip_service(std::uint64_t service) {
  const std::uint64_t space = service >> 16;
  return space == static_cast<std::uint16_t>(PortSpace::Tcp) ||
         space == static_cast<std::uint16_t>(PortSpace::Udp) ||
         space == static_cast<std::uint16_t>(PortSpace::Ib);
}

struct IpHeader {
  IpAddress source, destination;  // of one family
  std::uint16_t source_port = 0;

  bool operator==(const IpHeader&) const = default;
};

// nullopt: too short, another version, or an unknown IP version.
std::optional<IpHeader> read_ip_header(ByteView private_data);
// Writes kIpHeaderBytes to `to`.
void write_ip_header(const IpHeader&, std::uint8_t* to);

}  // namespace urnic::ib_cm
