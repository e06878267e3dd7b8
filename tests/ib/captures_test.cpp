// Captured packets of two Linux rxe ends, read by our codec: see tests/golden/roce/README.md.
#include <gtest/gtest.h>

#include <map>

#include "ib/check.h"
#include "ib/icrc.h"
#include "ib/packet.h"
#include "roce_capture.h"

namespace urnic::ib {
namespace {

using test::Captured;
using test::roce_capture;
using urnic::test::Bytes;
using urnic::test::to_hex;

// Packets by opcode, as counted by
//   tshark -r F -d udp.port==4791,infiniband -Y infiniband -T fields -e infiniband.bth.opcode
struct Expected {
  const char* file;
  std::map<int, int> opcodes;
};

const std::vector<Expected>& expected() {
  static const std::vector<Expected> all = {
      {"rxe-rxe-atomic-cmp_swap-5.pcap", {{0x12, 5}, {0x13, 5}}},
      {"rxe-rxe-cm-reject-no-listener.pcap", {{0x64, 2}}},
      {"rxe-rxe-ib_send_bw-R-4000-cm.pcap",
       {{0x00, 5}, {0x01, 10}, {0x02, 5}, {0x04, 22}, {0x11, 27}, {0x64, 9}}},
      {"rxe-rxe-rc_pingpong-2500.pcap", {{0x00, 6}, {0x01, 6}, {0x02, 6}, {0x11, 6}}},
      {"rxe-rxe-read-5000-n6-o4.pcap", {{0x0c, 4}, {0x0d, 4}, {0x0e, 12}, {0x0f, 4}}},
      {"rxe-rxe-rping-ipv4-C2-S3000.pcap",
       {{0x04, 8},
        {0x06, 2},
        {0x07, 2},
        {0x08, 2},
        {0x0c, 2},
        {0x0d, 2},
        {0x0e, 2},
        {0x0f, 2},
        {0x11, 10},
        {0x64, 5}}},
      {"rxe-rxe-rping-ipv6-C1-S100.pcap",
       {{0x04, 4}, {0x0a, 1}, {0x0c, 1}, {0x10, 1}, {0x11, 5}, {0x64, 5}}},
      {"rxe-rxe-uc_pingpong-3000-first.pcap", {{0x20, 4}, {0x21, 4}, {0x22, 4}}},
      {"rxe-rxe-ud_pingpong-700.pcap", {{0x64, 8}}},
      {"rxe-rxe-udaddy-sidr-ud-imm.pcap", {{0x64, 2}, {0x65, 6}}},
  };
  return all;
}

TEST(RoceCaptures, EveryPacketOfLinuxRxeIsParsedAndCountedAsByTshark) {
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    std::map<int, int> opcodes;
    for (const Captured& c : roce_capture(e.file)) {
      const auto packet = open_packet(c.ip_udp, c.datagram);
      ASSERT_TRUE(packet.ok()) << name(packet.error()) << ": " << to_hex(c.datagram);
      EXPECT_TRUE(packet->header.row().known());
      ++opcodes[packet->header.bth.opcode.byte];
    }
    EXPECT_EQ(opcodes, e.opcodes);
  }
}

// proves: IB-1
TEST(RoceCaptures, EveryIcrcOfLinuxRxeMatchesOurs) {
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    for (const Captured& c : roce_capture(e.file)) {
      ASSERT_TRUE(icrc_good(c.ip_udp, c.datagram)) << to_hex(c.datagram);
    }
  }
}

// Rebuilt from the parsed values alone, ICRC included.
TEST(RoceCaptures, EveryPacketIsRebuiltByteForByte) {
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    for (const Captured& c : roce_capture(e.file)) {
      const auto packet = parse_packet(c.datagram);
      ASSERT_TRUE(packet.ok());
      const std::size_t size = packet_bytes(packet->header.bth.opcode, packet->payload.size());
      ASSERT_EQ(size, c.datagram.size());
      Bytes again(size, 0xee);
      ASSERT_EQ(emit_packet(packet->header, packet->payload, again.data()), size);
      const bool v4 = c.ip_udp.size() == kIpv4UdpBytes;
      const ByteView ip = c.ip_udp, addresses = ip.subspan(v4 ? 12 : 8);
      const std::size_t address = v4 ? 4 : 16;
      DatagramFields f;
      f.source = IpAddress::from_bytes(addresses.first(address));
      f.destination = IpAddress::from_bytes(addresses.subspan(address, address));
      f.source_port = load_be16(addresses.data() + 2 * address);
      f.identification = v4 ? load_be16(ip.data() + 4) : std::uint16_t{0};
      seal(pseudo_headers(f, size).view(), again);
      ASSERT_EQ(to_hex(again), to_hex(c.datagram));
    }
  }
}

// With any other length than that of the datagram it is not a valid packet.
TEST(RoceCaptures, ATruncatedPacketIsRefused) {
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    for (const Captured& c : roce_capture(e.file)) {
      for (std::size_t n = 0; n < c.datagram.size(); ++n) {
        ASSERT_FALSE(open_packet(c.ip_udp, ByteView(c.datagram).first(n)).ok()) << n;
      }
    }
  }
}

}  // namespace
}  // namespace urnic::ib
