// A line that marks (RFC 3168, 5).
#include "fault/mark.h"

#include <gtest/gtest.h>

#include "base/inet_checksum.h"
#include "fault/fault_line.h"
#include "net/classify.h"
#include "net/ethernet.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::fault {
namespace {

Frame datagram(bool v6, std::uint8_t traffic_class) {
  Frame f;
  f.bytes.resize(14 + (v6 ? 40 : 20) + 100);
  std::uint8_t* p = f.bytes.data();
  const net::EthernetHeader eth{{}, {}, 0, v6 ? net::kEtherTypeIpv6 : net::kEtherTypeIpv4};
  p += net::emit_ethernet(eth, p);
  if (v6) {
    net::emit_ipv6({traffic_class, 0xabcde, 100, 17, 64, *IpAddress::parse("fd00::1"),
                    *IpAddress::parse("fd00::2")},
                   p);
  } else {
    net::emit_ipv4({traffic_class, 120, 0, net::kIpv4DontFragment, 64, 17,
                    IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2)},
                   p);
  }
  return f;
}

TEST(MarkFrame, SetsCeOnlyIfTheSenderSupportsEcn) {
  for (const bool v6 : {false, true}) {
    for (const std::uint8_t ecn : {0, 1, 2, 3}) {
      Frame f = datagram(v6, static_cast<std::uint8_t>(0xb8 | ecn));
      const Frame was = f;
      const bool takes_part = ecn == 1 || ecn == 2;
      EXPECT_EQ(mark_frame(&f), takes_part);
      const auto c = net::classify(f.bytes, static_cast<std::uint32_t>(f.bytes.size()));
      EXPECT_EQ(c.kind, net::FrameKind::Other) << "the header's checksum is right";
      EXPECT_EQ(c.ecn, takes_part ? 3 : ecn);
      EXPECT_EQ(f.bytes == was.bytes, !takes_part);
    }
  }
  Frame none;
  none.bytes.resize(20);
  EXPECT_FALSE(mark_frame(&none));
}

TEST(FaultLineMark, MarksFramesThatWaitTooLong) {
  const auto plan = FaultPlan::parse("rate=8mbit,mark=300us");
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->to_string(), "rate=8000000bit,mark=300us");
  FaultLine line(*plan, Direction::Tx, 0, nullptr);
  // 134 bytes take 134 us each.
  for (int i = 0; i < 6; ++i) {
    line.push(datagram(false, 2).bytes, {}, URNIC_CSUM_UNKNOWN, Instant::from_ns(0));
  }
  EXPECT_EQ(line.counters().of(FaultKind::Mark), 3u);
  ASSERT_EQ(line.ready(Instant::from_ns(10'000'000)), 6u);
  for (int i = 0; i < 6; ++i) {
    const Frame f = line.pop();
    EXPECT_EQ(f.bytes[15] & 3, i < 3 ? 2 : 3) << i;
  }
  EXPECT_FALSE(FaultPlan::parse("mark=7").ok());
}

}  // namespace
}  // namespace urnic::fault
