// Reads RoCEv2 packets from capture files (classic pcap, Ethernet).
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "ib/packet.h"
#include "support/golden.h"
#include "support/pcap.h"

namespace urnic::ib::test {

using urnic::test::Bytes;

// One packet with the IP and UDP headers before it.
struct Captured {
  Bytes ip_udp;    // IP and UDP header as on the wire
  Bytes datagram;  // BTH to ICRC
};

// IPv4 or IPv6 with UDP to kUdpPort; everything else in a frame, including padding, is left out.
inline std::vector<Captured> roce_packets(const std::vector<Bytes>& frames) {
  constexpr std::size_t kEthernet = 14;
  std::vector<Captured> packets;
  for (const Bytes& frame : frames) {
    const ByteView ip = ByteView(frame).subspan(kEthernet);
    const std::uint16_t type = load_be16(frame.data() + 12);
    std::size_t header = 0;
    if (type == 0x0800 && ip[9] == 17) header = (ip[0] & 15u) * 4u;
    if (type == 0x86dd && ip[6] == 17) header = 40;
    if (header == 0 || load_be16(ip.data() + header + 2) != kUdpPort) continue;
    const std::size_t udp = load_be16(ip.data() + header + 4);
    const ByteView datagram = ip.subspan(header + 8, udp - 8);
    packets.push_back({Bytes(ip.begin(), ip.begin() + static_cast<std::ptrdiff_t>(header + 8)),
                       Bytes(datagram.begin(), datagram.end())});
  }
  return packets;
}

// From tests/golden/roce.
inline std::vector<Captured> roce_capture(const std::string& name) {
  const auto frames = urnic::test::read_pcap(urnic::test::golden_path("roce/" + name));
  EXPECT_TRUE(frames) << "cannot read " << name;
  return frames ? roce_packets(*frames) : std::vector<Captured>{};
}

}  // namespace urnic::ib::test
