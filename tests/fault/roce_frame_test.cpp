// RoCE packets on a faulty line: how they are parsed, and that only the ICRC can detect the damage.
#include "fault/roce_frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>

#include "base/inet_checksum.h"
#include "fault/fault_line.h"
#include "fault/frame_view.h"
#include "ib/icrc.h"
#include "ib/packet.h"
#include "net/header_template.h"
#include "net/ipv4.h"
#include "net/ipv6.h"
#include "tcp_frames.h"

namespace urnic::fault {
namespace {

using namespace urnic::test;
using ib::Operation;
using ib::ServiceType;

constexpr std::uint32_t kPsn = 0xabcdef;

struct PacketSpec {
  Operation operation = Operation::WriteMiddle;
  std::size_t payload = 100;
  std::uint32_t dest_qp = 77;
  bool v6 = false;
  bool checksum = false;  // UDP checksum
  std::uint16_t port = ib::kUdpPort;
};

Bytes frame(const PacketSpec& s) {
  net::HeaderTemplateConfig c;
  c.src_mac = {{2, 0, 0, 0, 0, 2}};
  c.dst_mac = {{2, 0, 0, 0, 0, 1}};
  c.src = s.v6 ? *IpAddress::parse("2001:db8::2") : IpAddress::v4(10, 0, 0, 2);
  c.dst = s.v6 ? *IpAddress::parse("2001:db8::1") : IpAddress::v4(10, 0, 0, 1);
  const net::HeaderTemplate ip(c);
  ib::PacketHeader h;
  h.bth.opcode = ib::Opcode(ServiceType::Rc, s.operation);
  h.bth.dest_qp = s.dest_qp;
  h.bth.psn = ib::Psn(kPsn);
  Bytes payload(s.payload);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::uint8_t>(i * 7);
  const std::size_t packet = ib::packet_bytes(h.bth.opcode, s.payload);
  Bytes f(ip.size() + 8 + packet);
  const auto udp_length = static_cast<std::uint32_t>(8 + packet);
  ip.emit(f.data(), udp_length, 0, 0);
  std::uint8_t* udp = f.data() + ip.size();
  std::uint8_t* const l3 = f.data() + 14;
  l3[s.v6 ? 6 : 9] = 17;
  if (!s.v6) {
    store_be16(l3 + 10, 0);
    store_be16(l3 + 10, inet_checksum(net::ipv4_header_sum(l3, 20)));
  }
  store_be16(udp, 0xc123);
  store_be16(udp + 2, s.port);
  store_be16(udp + 4, static_cast<std::uint16_t>(udp_length));
  ib::emit_packet(h, payload, udp + 8);
  ib::seal({l3, static_cast<std::size_t>(udp + 8 - l3)}, {udp + 8, packet});
  if (s.checksum) {
    const std::uint32_t pseudo = s.v6 ? net::pseudo_sum_v6(l3 + 8, 17, udp_length)
                                      : net::pseudo_sum_v4(l3 + 12, 17, udp_length);
    store_be16(udp + 6, inet_checksum(std::uint64_t{pseudo} + inet_sum({udp, udp_length})));
  }
  return f;
}

bool icrc_is_right(const Frame& f, const RoceView& v) {
  const ByteView ip_udp = ByteView(f.bytes).subspan(v.net.l3_offset, v.bth - v.net.l3_offset);
  return ib::icrc_good(ip_udp, ByteView(f.bytes).subspan(v.bth, v.bytes));
}
bool checksum_is_right(const Frame& f, const RoceView& v) {
  const ByteView udp = ByteView(f.bytes).subspan(v.net.l4_offset, v.net.l4_len);
  const std::uint8_t* ip = f.bytes.data() + v.net.l3_offset;
  const auto length = static_cast<std::uint32_t>(udp.size());
  const std::uint32_t pseudo =
      v.net.v6 ? net::pseudo_sum_v6(ip + 8, 17, length) : net::pseudo_sum_v4(ip + 12, 17, length);
  return inet_fold(std::uint64_t{pseudo} + inet_sum(udp)) == 0xffff;
}

Instant at(std::int64_t us) {
  return Instant::from_ns(0) + Duration::us(us);
}
// All frames that leave a line with this plan.
struct Line {
  explicit Line(const char* plan) : line(*FaultPlan::parse(plan), Direction::Rx, 0, &log) {}
  std::vector<Frame> pass(std::initializer_list<Bytes> frames) {
    std::vector<Frame> out;
    for (const Bytes& f : frames) line.push(f, {}, URNIC_CSUM_UNKNOWN, at(0));
    while (line.ready(at(5000)) != 0) out.push_back(line.pop());
    return out;
  }
  FaultLog log{100};
  FaultLine line;
};

TEST(RoceFrame, ItsPartsAreFoundOverBothIpVersions) {
  for (const bool v6 : {false, true}) {
    const Bytes b = frame({.operation = Operation::WriteFirst, .payload = 101, .v6 = v6});
    const FrameView v = look_at(b, static_cast<std::uint32_t>(b.size()));
    ASSERT_TRUE(v.roce);
    EXPECT_FALSE(v.tcp);
    EXPECT_EQ(v.roce->bth, 14u + (v6 ? 40u : 20u) + 8u);
    EXPECT_EQ(v.payload(), 101u);
    EXPECT_EQ(v.roce->psn, kPsn);
    EXPECT_EQ(v.roce->dest_qp, 77u);
    EXPECT_EQ(v.roce->body(), 16u + 104u);  // RETH, payload and pad
  }
}

TEST(RoceFrame, OtherDatagramsAreNotRoce) {
  const auto is = [](Bytes b) {
    return look_at(b, static_cast<std::uint32_t>(b.size())).roce.has_value();
  };
  EXPECT_TRUE(is(frame({})));
  EXPECT_FALSE(is(frame({.port = 4790})));
  Bytes lying = frame({});
  store_be16(lying.data() + 14 + 20 + 4, 2000);  // longer than the IP datagram
  EXPECT_FALSE(is(lying));
  Bytes cut = frame({.operation = Operation::CmpSwap, .payload = 0});
  store_be16(cut.data() + 14 + 20 + 4, 8 + 12 + 4);  // without the headers that its opcode requires
  EXPECT_FALSE(is(cut));
  EXPECT_FALSE(is(tcp_frame({.payload = 100})));
}

TEST(RoceFrame, OnlyTheIcrcDetectsTheDamage) {
  for (const bool v6 : {false, true}) {
    for (const bool checksum : {false, true}) {
      const Bytes whole = frame({.v6 = v6, .checksum = checksum});
      for (int seed = 1; seed < 40; ++seed) {
        Line l(("corrupt=1,seed=" + std::to_string(seed)).c_str());
        const auto out = l.pass({whole});
        ASSERT_EQ(out.size(), 1u);
        const FrameView v = look_at(out[0]);
        ASSERT_TRUE(v.roce);
        EXPECT_FALSE(icrc_is_right(out[0], *v.roce));
        EXPECT_EQ(load_be16(out[0].bytes.data() + v.roce->net.l4_offset + 6) != 0, checksum);
        if (checksum) {
          EXPECT_TRUE(checksum_is_right(out[0], *v.roce)) << seed;
        }
        // The BTH and everything before it are unchanged.
        EXPECT_EQ(std::memcmp(out[0].bytes.data(), whole.data(), 36), 0);
        const auto records = l.log.records();
        ASSERT_EQ(records.size(), 1u);
        EXPECT_TRUE(records[0].roce);
        EXPECT_EQ(records[0].seq, kPsn);
        EXPECT_EQ(records[0].payload, 100u);
        EXPECT_NE(out[0].bytes[records[0].at], whole[records[0].at]);
      }
    }
  }
}

// An ACK has no payload, but has headers covered by the ICRC.
TEST(RoceFrame, AcknowledgmentsCanBeDamagedToo) {
  Line l("corrupt=1");
  const auto out = l.pass({frame({.operation = Operation::Acknowledge, .payload = 0})});
  EXPECT_EQ(l.line.counters().of(FaultKind::Corrupt), 1u);
  EXPECT_FALSE(icrc_is_right(out[0], *look_at(out[0]).roce));
}

TEST(RoceFrame, BadSumAppliesOnlyToTcp) {
  Line l("badsum=1");
  const Bytes whole = frame({});
  const auto out = l.pass({whole});
  EXPECT_EQ(out[0].bytes, whole);
  EXPECT_EQ(l.line.counters().of(FaultKind::BadSum), 0u);
}

TEST(RoceFrame, AFrameInPlaceIsDamagedInTheSameWay) {
  FaultLine line(*FaultPlan::parse("corrupt=1"), Direction::Rx, 0, nullptr);
  ASSERT_TRUE(line.in_place());
  Bytes whole = frame({});
  urnic_frame f{};
  f.data[0] = whole.data();
  f.len[0] = 60;
  f.data[1] = whole.data() + 60;
  f.len[1] = static_cast<std::uint32_t>(whole.size() - 60);
  Frame changed;
  ASSERT_EQ(line.inspect(f, at(0), &changed), FaultLine::Fate::Change);
  EXPECT_FALSE(icrc_is_right(changed, *look_at(changed).roce));
}

TEST(RoceFrame, LossDuplicationAndReorderingApplyToPackets) {
  const Bytes a = frame({.payload = 10}), b = frame({.payload = 20}), c = frame({.payload = 30});
  Line l("at=loss:1+dup:2+reorder:2");
  const auto out = l.pass({a, b, c});
  std::vector<std::uint32_t> seen;
  for (const Frame& f : out) seen.push_back(look_at(f).payload());
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{20, 30, 20}));
  for (const FaultRecord& r : l.log.records()) EXPECT_TRUE(r.roce);
}

TEST(RoceFrame, ConnectionManagementIsProtectedOnRequest) {
  const Bytes cm = frame({.payload = 256, .dest_qp = 1});
  Line spared("loss=1,skip_handshake=on");
  EXPECT_EQ(spared.pass({cm, frame({})}).size(), 1u);
  EXPECT_EQ(spared.line.counters().spared, 1u);
  Line lost("loss=1");
  EXPECT_EQ(lost.pass({cm, frame({})}).size(), 0u);
}

TEST(RoceFrame, PayloadOnlySelectsPacketsWithMorePayload) {
  Line l("loss=1,payload_only=100");
  const auto out = l.pass({frame({.payload = 100}), frame({.payload = 101}),
                           frame({.operation = Operation::Acknowledge, .payload = 0})});
  EXPECT_EQ(out.size(), 2u);
  EXPECT_EQ(l.line.counters().eligible, 1u);
}

}  // namespace
}  // namespace urnic::fault
