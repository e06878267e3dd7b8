#include "roce/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "ib/icrc.h"
#include "tests/support/golden.h"
#include "tests/support/pcap.h"

namespace urnic::roce {
namespace {

using test::Bytes;

std::vector<Bytes> capture(const std::string& name) {
  const auto frames = test::read_pcap(test::golden_path("roce/" + name));
  EXPECT_TRUE(frames) << name;
  return frames.value_or(std::vector<Bytes>{});
}

ByteView head_of(const Bytes& frame) {
  return ByteView(frame).first(std::min(frame.size(), net::kHeadSpan));
}

// Frames of Linux: each is recognized as RoCE, its ICRC is correct at the position we find, and we
// write the same frame around the same packet.
// proves: IB-1
TEST(RoceFrame, EqualsThoseOfLinuxByteForByte) {
  std::size_t v4 = 0, v6 = 0;
  for (const char* name : {"rxe-rxe-rc_pingpong-2500.pcap", "rxe-rxe-rping-ipv6-C1-S100.pcap",
                           "rxe-rxe-read-5000-n6-o4.pcap", "rxe-rxe-atomic-cmp_swap-5.pcap"}) {
    for (const Bytes& frame : capture(name)) {
      const net::Classified c =
          net::classify(head_of(frame), static_cast<std::uint32_t>(frame.size()));
      if (!is_ours(c, head_of(frame))) continue;
      const auto d = find_packet(c, head_of(frame));
      ASSERT_TRUE(d);
      const ByteView packet = ByteView(frame).subspan(d->offset, d->bytes);
      ASSERT_TRUE(ib::icrc_good(d->ip_udp, packet));
      FrameConfig config{c.src_mac, c.dst_mac, c.vlan};
      const std::uint8_t* ip = frame.data() + c.l3_offset;
      config.av = {c.src, c.dst, load_be16(frame.data() + c.l4_offset),
                   c.v6 ? static_cast<std::uint8_t>(load_be16(ip) >> 4) : ip[1], c.ttl};
      config.flow_label = c.v6 ? load_be32(ip) & 0xfffff : 0;
      const FrameHeaders headers(config);
      ASSERT_EQ(headers.size(), d->offset);
      Bytes ours(frame.size(), 0xee);
      std::copy(packet.begin(), packet.end() - ib::kIcrcBytes, ours.begin() + d->offset);
      const std::size_t n =
          headers.finish(ours.data(), packet.size(), c.v6 ? 0 : load_be16(ip + 4));
      ASSERT_EQ(n, d->offset + packet.size());
      // The UDP checksum is optional.
      ours[c.l4_offset + 6u] = frame[c.l4_offset + 6u];
      ours[c.l4_offset + 7u] = frame[c.l4_offset + 7u];
      ours.resize(n);
      EXPECT_EQ(ours, Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(n)));
      ++(c.v6 ? v6 : v4);
    }
  }
  EXPECT_GT(v4, 20u);
  EXPECT_GT(v6, 5u);
}

// proves: IB-1
TEST(RoceFrame, WriteEqualsFinish) {
  Rng rng(3);
  for (const bool v6 : {false, true}) {
    FrameConfig config;
    config.vlan = v6 ? 3 : 0;
    config.av.local = *IpAddress::parse(v6 ? "2001:db8::1" : "192.0.2.1");
    config.av.remote = *IpAddress::parse(v6 ? "2001:db8::2" : "192.0.2.2");
    config.av.traffic_class = 0x28;
    FrameHeaders headers(config);
    for (std::uint32_t n = 0; n < 1100; n += n < 150 ? 1 : 97) {
      ib::PacketHeader h;
      h.bth.opcode = ib::Opcode(ib::ServiceType::Rc, ib::Operation::WriteOnly);
      h.bth.psn = ib::Psn(static_cast<std::uint32_t>(rng.next()));
      h.reth = {rng.next(), 7, n};
      Bytes payload(n);
      for (auto& b : payload) b = static_cast<std::uint8_t>(rng.next());
      Bytes one(1300, 0xee), other(1300, 0xee);
      const std::size_t packet = ib::emit_packet(h, payload, one.data() + headers.size());
      const std::size_t frame = headers.finish(one.data(), packet, 0);
      const ByteView all(payload);
      const std::size_t cut = rng.below(n + 1), cut2 = cut + rng.below(n - cut + 1);
      const ByteView pieces[] = {all.first(cut), all.subspan(cut, cut2 - cut), all.subspan(cut2)};
      ASSERT_EQ(headers.write(other.data(), h, pieces, n), frame);
      ASSERT_EQ(other, one) << n << " bytes, cut at " << cut << " and " << cut2;
    }
  }
}

// proves: IB-1
TEST(RoceFrame, ARunEqualsSingleFrames) {
  Rng rng(5);
  for (const bool v6 : {false, true}) {
    for (const std::uint16_t vlan : {0, 3}) {
      FrameConfig config;
      config.vlan = vlan;
      config.av.local = *IpAddress::parse(v6 ? "2001:db8::1" : "192.0.2.1");
      config.av.remote = *IpAddress::parse(v6 ? "2001:db8::2" : "192.0.2.2");
      FrameHeaders headers(config);
      for (const std::uint32_t n : {256u, 512u, 1024u, 2048u, 4096u}) {
        ib::PacketHeader h;
        h.bth.opcode =
            ib::Opcode(ib::ServiceType::Rc,
                       rng.below(2) != 0 ? ib::Operation::WriteMiddle : ib::Operation::SendMiddle);
        h.bth.dest_qp = static_cast<std::uint32_t>(rng.next()) & ib::kMask24;
        h.bth.psn = ib::Psn(ib::kMask24 - 2);
        const FrameRun run = headers.run_of(h, n);
        for (int i = 0; i < 5; ++i) {
          h.bth.ack_request = rng.below(2) != 0;
          Bytes payload(n), one(4300, 0xee), other(4300, 0xee);
          for (auto& b : payload) b = static_cast<std::uint8_t>(rng.next());
          const std::size_t packet = ib::emit_packet(h, payload, one.data() + headers.size());
          const std::size_t frame = headers.finish(one.data(), packet, 0);
          ASSERT_EQ(run.write(other.data(), h.bth.psn, h.bth.ack_request, payload.data()), frame);
          ASSERT_EQ(other, one) << n << " bytes, packet " << i;
          ++h.bth.psn;
        }
      }
    }
  }
}

// proves: IB-1
TEST(RoceFrame, TheRememberedIcrcStateFitsTheNextFrame) {
  using Op = ib::Operation;
  Rng rng(8);
  for (const bool v6 : {false, true}) {
    FrameConfig config;
    config.av.local = *IpAddress::parse(v6 ? "2001:db8::1" : "192.0.2.1");
    config.av.remote = *IpAddress::parse(v6 ? "2001:db8::2" : "192.0.2.2");
    FrameHeaders headers(config);
    const FrameHeaders fresh(config);
    ib::PacketHeader h;
    h.bth.dest_qp = 0x123456;
    std::uint32_t n = 64;
    for (int i = 0; i < 2000; ++i) {
      // Usually one of them changes, so the rest is taken from the remembered state.
      switch (rng.below(9)) {
        case 0:
          h.bth.dest_qp ^= 1u << rng.below(24);
          break;
        case 1:
          h.bth.pkey ^= 1u << rng.below(16);
          break;
        case 2:
          h.bth.solicited = !h.bth.solicited;
          break;
        case 3:
          n = static_cast<std::uint32_t>(rng.below(70));
          break;
        case 4:
          h.bth.migrated = !h.bth.migrated;
          break;
        default:
          break;
      }
      constexpr Op kOps[] = {Op::SendMiddle,       Op::WriteMiddle, Op::WriteLast,
                             Op::WriteOnly,        Op::SendOnlyImm, Op::ReadResponseMiddle,
                             Op::ReadResponseLast, Op::CmpSwap};
      const Op op = kOps[rng.below(std::size(kOps))];
      h.bth.opcode = ib::Opcode(ib::ServiceType::Rc, op);
      h.bth.psn = ib::Psn(static_cast<std::uint32_t>(rng.next()));
      h.bth.ack_request = rng.below(2) != 0;
      h.reth = {rng.next(), static_cast<std::uint32_t>(rng.next()), n};
      h.aeth = {ib::Syndrome{static_cast<std::uint8_t>(rng.below(128))},
                ib::Msn(static_cast<std::uint32_t>(rng.next()))};
      h.atomic = {rng.next(), 5, rng.next(), rng.next()};
      h.immediate = static_cast<std::uint32_t>(rng.next());
      const std::uint32_t bytes = op == Op::CmpSwap ? 0 : n;
      Bytes payload(bytes, 0x5a), one(300, 0xee), other(300, 0xee);
      const std::size_t packet = ib::emit_packet(h, payload, one.data() + fresh.size());
      const std::size_t frame = fresh.finish(one.data(), packet, 0);
      const ByteView piece(payload);
      ASSERT_EQ(headers.write(other.data(), h, {&piece, 1}, bytes), frame);
      ASSERT_EQ(other, one) << "packet " << i << " of " << bytes << " bytes";
    }
  }
}

class FrameParts : public ::testing::Test {
 protected:
  void SetUp() override {
    FrameConfig config;
    config.source = MacAddress{{2, 0, 0, 0, 0, 1}};
    config.destination = MacAddress{{2, 0, 0, 0, 0, 2}};
    config.vlan = 7;
    config.av.local = IpAddress::v4(10, 0, 0, 1);
    config.av.remote = IpAddress::v4(10, 0, 0, 2);
    const FrameHeaders headers(config);
    frame.resize(headers.size() + 16, 0);
    headers.finish(frame.data(), 16, 9);
    look();
  }
  void look() { c = net::classify(frame, static_cast<std::uint32_t>(frame.size())); }
  Bytes frame;
  net::Classified c;
};

TEST_F(FrameParts, TaggedFramesAreFound) {
  ASSERT_TRUE(is_ours(c, frame));
  EXPECT_EQ(c.vlan, 7);
  const auto d = find_packet(c, frame);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->bytes, 16u);
  EXPECT_EQ(d->offset, 18u + 20 + 8);
}

// proves: IB-2
TEST_F(FrameParts, OtherPortsAndProtocolsAreNotRoce) {
  const std::size_t udp = c.l4_offset;
  store_be16(frame.data() + udp + 2, 4790);
  EXPECT_FALSE(is_ours(c, frame));
  store_be16(frame.data() + udp + 2, ib::kUdpPort);
  EXPECT_TRUE(is_ours(c, frame));
  c.protocol = 16;
  EXPECT_FALSE(is_ours(c, frame));
  c.protocol = net::kProtoUdp;
  c.kind = net::FrameKind::Drop;
  EXPECT_FALSE(is_ours(c, frame));
}

// proves: IB-2
TEST_F(FrameParts, InconsistentLengthsAreRefusedAndTruncatedHeadersAreNotRoce) {
  for (const int off : {-9, -1, 1, 1000}) {
    Bytes wrong = frame;
    store_be16(wrong.data() + c.l4_offset + 4,
               static_cast<std::uint16_t>(static_cast<int>(c.l4_len) + off));
    EXPECT_FALSE(find_packet(c, wrong)) << off;
  }
  EXPECT_FALSE(is_ours(c, ByteView(frame).first(c.l4_offset + 7u)));
  c.l4_len = 7;
  EXPECT_FALSE(is_ours(c, frame));
}

}  // namespace
}  // namespace urnic::roce
