// The reaction to CE marks (S-10): the format and number of CNPs.
#include "ib/marks.h"

#include <gtest/gtest.h>

namespace urnic::ib {
namespace {

// proves: S-10, IB-146
TEST(Marks, SendsAtMostOneCnpPer50us) {
  Marks m;
  Instant now = Instant::from_ns(1'000'000);
  QpAttributes qp;
  EXPECT_FALSE(m.wanted());
  int cnps = 0;
  for (int us = 0; us < 1000; ++us) {
    m.seen(now + Duration::us(us));
    if (!m.wanted()) continue;
    m.next(qp);
    ++cnps;
  }
  EXPECT_EQ(cnps, 20);
  EXPECT_EQ(m.cnps(), 20u);
  EXPECT_EQ(m.marked(), 1000u);
}

// proves: S-10, IB-146
TEST(Marks, ACnpHasTheFormatOfAnnexA17) {
  Marks m;
  m.seen(Instant::from_ns(1));
  QpAttributes qp;
  qp.dest_qp = 0x123456;
  const PacketHeader h = m.next(qp);
  const auto payload = Marks::payload();
  std::uint8_t bytes[64] = {};
  ASSERT_EQ(emit_packet(h, payload, bytes), 32u);  // BTH, 16 reserved, ICRC
  EXPECT_EQ(bytes[0], 0x81);
  EXPECT_EQ(bytes[4], 0x40);  // BECN
  EXPECT_EQ(load_be32(bytes + 4) & 0xffffff, 0x123456u);
  EXPECT_EQ(load_be32(bytes + 8), 0u);  // no AckReq, PSN 0
  for (int i = 12; i < 28; ++i) EXPECT_EQ(bytes[i], 0) << i;
  const auto parsed = parse_packet({bytes, 32});
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(Marks::is_cnp(*parsed));
  EXPECT_TRUE(parsed->header.row().response()) << "it is for who sends";
  bytes[4] = 0;
  EXPECT_FALSE(Marks::is_cnp(*parse_packet({bytes, 32})));
  bytes[4] = 0x40;
  EXPECT_FALSE(Marks::is_cnp(*parse_packet({bytes, 28})));
}

}  // namespace
}  // namespace urnic::ib
