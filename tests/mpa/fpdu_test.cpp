#include "mpa/fpdu.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "support/golden.h"

namespace urnic::mpa {
namespace {

using test::golden;
using test::read_golden;
using test::to_hex;

TEST(Fpdu, SizeIsAMultipleOfFourAndPadIsMinimal_RFC5044_4_1) {
  for (std::uint32_t n = 0; n <= kMaxUlpdu; ++n) {
    ASSERT_EQ(fpdu_size(n) % 4, 0u) << n;
    ASSERT_LT(pad_of(n), 4u) << n;
    ASSERT_EQ(fpdu_size(n), 6 + n + pad_of(n)) << n;
  }
}

TEST(Fpdu, MulpduWithoutMarkers_RFC5044_4_5) {
  EXPECT_EQ(mulpdu(536), 530u);
  EXPECT_EQ(mulpdu(1448), 1442u);
  EXPECT_EQ(mulpdu(1460), 1454u);
  EXPECT_EQ(mulpdu(8948), 8942u);
  EXPECT_EQ(mulpdu(8960), 8954u);
}

TEST(Fpdu, MulpduIsTheLargestThatFitsTheSegment) {
  for (std::uint32_t emss = kMinMulpdu + 16; emss <= 20000; ++emss) {
    ASSERT_LE(fpdu_size(mulpdu(emss)), emss) << emss;
    ASSERT_GT(fpdu_size(mulpdu(emss) + 1), emss) << emss;
  }
}

TEST(Fpdu, MulpduStaysWithinItsBoundsForAnySegmentSize) {
  for (const std::uint32_t emss : {0u, 1u, 5u, 6u, 64u, 127u, 128u, 133u}) {
    EXPECT_EQ(mulpdu(emss), kMinMulpdu) << emss;
  }
  EXPECT_EQ(mulpdu(70000), kMaxUlpdu);
  EXPECT_EQ(mulpdu(0xffffffff), kMaxUlpdu);
}

TEST(Fpdu, GoldenCrcsAgree_RFC5044_4_4) {
  for (const auto& g : read_golden("fpdu.txt")) {
    SCOPED_TRACE(g.name);
    const ByteView fpdu = g.bytes;
    ASSERT_EQ(fpdu_size(load_be16(fpdu.data())), fpdu.size());
    EXPECT_EQ(crc_of(fpdu), crc32c(fpdu.first(fpdu.size() - kCrcField)));
  }
}

TEST(Fpdu, UlpduHasTheLengthOfTheLengthField) {
  const auto g = golden("fpdu.txt", "F2");
  EXPECT_EQ(to_hex(ulpdu_of(g.bytes)), "41430000000000000000000000020000001818191a1b1c");
}

TEST(Crc32c, GoldenValuesInWireOrder_RFC3720_B4) {
  for (const auto& g : read_golden("crc32c.txt")) {
    std::uint8_t wire[4];
    store_le32(wire, crc32c(g.bytes));
    EXPECT_EQ(to_hex(wire), g.remark) << g.name;
  }
}

}  // namespace
}  // namespace urnic::mpa
