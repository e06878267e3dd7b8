// Parses just enough of Ethernet, IP and TCP to split a super-segment into frames and to join
// frames into one (E-33). A port may not use the protocol folders, and needs only offsets.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace urnic::port {

// The places of the headers of a TCP segment in an Ethernet frame. All offsets are from the start
// of the frame.
struct TcpFrame {
  bool ipv6 = false;
  std::uint16_t ip = 0;       // IP header
  std::uint16_t tcp = 0;      // TCP header
  std::uint16_t payload = 0;  // first payload byte; also the length of all headers
  std::uint32_t end = 0;      // after the last payload byte (without Ethernet padding)

  std::uint32_t payload_length() const { return end - payload; }
};

namespace tcp_flag {
inline constexpr std::uint8_t kFin = 0x01, kSyn = 0x02, kRst = 0x04, kPsh = 0x08, kAck = 0x10,
                              kUrg = 0x20, kEce = 0x40, kCwr = 0x80;
}

// `head` holds the frame's first bytes with all headers; `length` is that of the whole frame.
// Returns nothing if it is not an unfragmented TCP segment, or if its lengths are inconsistent.
// `length_given` = false takes the end from `length` instead of the IP header (for super-segments
// of 64 KiB and more).
std::optional<TcpFrame> parse_tcp_frame(ByteView head, std::uint32_t length,
                                        bool length_given = true);

// The unfolded sum of the pseudo-header for a segment of `tcp_length` bytes (header and payload).
std::uint64_t pseudo_sum(ByteView head, const TcpFrame& f, std::uint32_t tcp_length);

// Sets the IP length (and, for IPv4, identification and header checksum) of a segment whose payload
// has `payload_length` bytes.
void set_ip_length(std::uint8_t* head, const TcpFrame& f, std::uint32_t payload_length,
                   std::uint16_t ipv4_id);

}  // namespace urnic::port
