// TCP segments as frames for the tests of this folder, and the stream that a receiver would
// reassemble.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/inet_checksum.h"
#include "fault/tcp_frame.h"
#include "net/header_template.h"
#include "tcp/segment.h"

namespace urnic::test {

using Bytes = std::vector<std::uint8_t>;

struct SegmentSpec {
  std::uint32_t seq = 1;
  std::size_t payload = 0;
  std::uint8_t flags = tcp::kAck;
  bool v6 = false;
  std::uint16_t vlan = 0;
  std::uint16_t src_port = 40000;
  std::uint32_t ack = 777;
  std::uint32_t tsval = 0;  // != 0: timestamps
  bool sack = false;        // a SACK block as well
  std::uint8_t ecn = 0;
  std::size_t padding = 0;  // Ethernet padding after the datagram
};

// Byte of the stream at sequence number `seq`.
inline std::uint8_t stream_byte(std::uint32_t seq) {
  return static_cast<std::uint8_t>((seq * 2654435761u) >> 21);
}

inline Bytes tcp_frame(const SegmentSpec& s) {
  net::HeaderTemplateConfig c;
  c.src_mac = {{2, 0, 0, 0, 0, 2}};
  c.dst_mac = {{2, 0, 0, 0, 0, 1}};
  c.vlan = s.vlan;
  c.src = s.v6 ? *IpAddress::parse("2001:db8::2") : IpAddress::v4(10, 0, 0, 2);
  c.dst = s.v6 ? *IpAddress::parse("2001:db8::1") : IpAddress::v4(10, 0, 0, 1);
  const net::HeaderTemplate ip(c);
  Bytes options;
  if (s.tsval != 0) {
    options = {1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 9};
    store_be32(&options[4], s.tsval);
  }
  if (s.sack) {
    const Bytes block = {1, 1, 5, 10, 0, 0, 1, 0, 0, 0, 2, 0};
    options.insert(options.end(), block.begin(), block.end());
  }
  const std::size_t header = 20 + options.size();
  Bytes f(ip.size() + header + s.payload);
  const auto len = static_cast<std::uint32_t>(header + s.payload);
  ip.emit(f.data(), len, 1, s.ecn);
  std::uint8_t* t = f.data() + ip.size();
  store_be16(t, s.src_port);
  store_be16(t + 2, 4420);
  store_be32(t + 4, s.seq);
  store_be32(t + 8, s.ack);
  t[12] = static_cast<std::uint8_t>(header / 4 * 16);
  t[13] = s.flags;
  store_be16(t + 14, 5000);
  std::copy(options.begin(), options.end(), t + 20);
  for (std::size_t i = 0; i < s.payload; ++i) {
    t[header + i] = stream_byte(s.seq + static_cast<std::uint32_t>(i));
  }
  store_be16(t + 16, inet_checksum(std::uint64_t{ip.pseudo_sum(len)} + inet_sum({t, len})));
  f.resize(f.size() + s.padding, 0xee);
  return f;
}

inline fault::Frame as_frame(const SegmentSpec& s) {
  return {tcp_frame(s), URNIC_CSUM_UNKNOWN};
}
inline fault::Frame frame_of(Bytes b) {
  return {std::move(b), URNIC_CSUM_UNKNOWN};
}

inline fault::TcpView view(const fault::Frame& f) {
  const auto v = fault::parse_tcp_frame(f);
  EXPECT_TRUE(v) << "not a TCP frame";
  return v.value_or(fault::TcpView{});
}
inline Bytes payload_of(const fault::Frame& f) {
  const auto v = view(f);
  const auto at = f.bytes.begin() + v.payload_offset();
  return {at, at + v.payload_len};
}
// Checks that header checksums are right and the content is as in stream_byte.
inline void expect_sound(const fault::Frame& f) {
  const auto v = view(f);
  EXPECT_TRUE(fault::tcp_checksum_ok(f, v));
  EXPECT_EQ(f.bytes.size(), v.overhead() + v.payload_len);
  const Bytes data = payload_of(f);
  for (std::size_t i = 0; i < data.size(); ++i) {
    ASSERT_EQ(data[i], stream_byte(v.seq + static_cast<std::uint32_t>(i))) << i;
  }
}

}  // namespace urnic::test
