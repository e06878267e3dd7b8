// Classifies a received frame: its kind, the offsets of its layers, source and destination. It is a
// pure function of the bytes and handles a TCP frame in one pass, so that the engine can first run
// it over a whole burst (D3).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/ip_address.h"
#include "net/drop_reason.h"

namespace urnic::net {

enum class FrameKind : std::uint8_t {
  Drop,   // see `reason`
  Tcp,    // l4 is the segment
  Arp,    // l3 is the ARP packet
  Icmp,   // l4 is the message
  Icmp6,  // l4 is the message; neighbour discovery included
  Other,  // well-formed unicast IP, of a protocol that urnic does not support
};

// The number of bytes of a frame that the engine should provide: enough for tagged Ethernet, IPv6
// with 74 bytes of extension headers (or IPv4 with all its options) and a full TCP header.
inline constexpr std::size_t kHeadSpan = 192;

inline constexpr std::uint8_t kCongestionExperienced = 3;  // of Classified::ecn (RFC 3168, 5)

struct Classified {
  FrameKind kind = FrameKind::Drop;
  DropReason reason = DropReason::None;
  std::uint8_t protocol = 0;  // of layer 4
  std::uint8_t ttl = 0;       // IPv6: hop limit
  std::uint8_t ecn = 0;       // the two ECN bits (RFC 3168)
  bool v6 = false;
  std::uint16_t vlan = 0;       // 0: untagged
  std::uint16_t l3_offset = 0;  // from the start of the frame
  std::uint16_t l4_offset = 0;
  std::uint32_t l4_len = 0;      // from the IP length, without Ethernet padding
  std::uint32_t pseudo_sum = 0;  // unfolded; plus inet_sum of l4_len bytes, folded: 0xffff is good
  MacAddress src_mac, dst_mac;
  IpAddress src, dst;
};

// `head` is the whole frame or its beginning with at least all headers. It must not change during
// the call (E-19: a copy if the memory is shared with a peer). `total_len` is the length of the
// whole frame. Verifies IPv4 header checksums and rejects fragments (E-18); does not verify the
// layer 4 checksum. For kind Tcp, `head` contains 20 bytes of TCP header.
Classified classify(ByteView head, std::uint32_t total_len);

// The same for a bare IP datagram (no Ethernet header): l3_offset is 0, MACs are zero.
Classified classify_datagram(ByteView head, std::uint32_t total_len);

}  // namespace urnic::net
