#include "ddp_rdma/fpdu_sizes.h"

#include <gtest/gtest.h>

namespace urnic::ddp {
namespace {

FpduSizes sizes_at(std::uint32_t emss, mpa::Policy policy = mpa::Policy::NoMarkers,
                   bool pack_partial = false) {
  FpduSizes sizes(pack_partial);
  sizes.set_framing({policy, 0});
  sizes.set_emss(emss);
  return sizes;
}

TEST(FpduSizes, OneOfFullSizeFitsTheSegmentWhereverItBegins) {
  for (const auto policy : {mpa::Policy::NoMarkers, mpa::Policy::Markers}) {
    for (const std::uint32_t emss : {536u, 1460u, 8960u}) {
      const FpduSizes sizes = sizes_at(emss, policy);
      for (const bool tagged : {false, true}) {
        const std::uint32_t ulpdu = header_of(tagged) + sizes.most(tagged);
        for (std::uint64_t at = 0; at < 1024; at += 4) {
          const std::uint32_t bytes = sizes.of(StreamOffset(at), ulpdu);
          ASSERT_LE(bytes, emss);
          ASSERT_LE(bytes, sizes.estimate(ulpdu)) << "an estimate is never too small";
        }
      }
    }
  }
}

TEST(FpduSizes, AMessageIsEstimatedByItsFpdus) {
  const FpduSizes sizes = sizes_at(1460);
  const std::uint32_t full = sizes.most(true);
  EXPECT_EQ(sizes.estimate_message(0, true), FpduSizes::kSmallestFpdu);
  EXPECT_EQ(sizes.estimate_message(2 * full, true), 2 * sizes.estimate(kTaggedHeader + full));
  EXPECT_EQ(sizes.estimate_message(2 * full + 1, true),
            2 * sizes.estimate(kTaggedHeader + full) + sizes.estimate(kTaggedHeader + 1));
  // More than 4 GiB in the stream.
  EXPECT_GT(sizes.estimate_message(0xffffffffu, true), std::uint64_t{0xffffffffu});
}

TEST(FpduSizes, AfterOtherFpdusAMessageBeginsWholeOrWithAFullSizeFpdu) {
  const FpduSizes plain = sizes_at(1460), packing = sizes_at(1460, mpa::Policy::NoMarkers, true);
  const Room behind{700, false, true};
  std::uint32_t payload = 0;
  EXPECT_TRUE(plain.fit(StreamOffset(), true, 600, true, behind, &payload));
  EXPECT_EQ(payload, 600u);
  EXPECT_FALSE(plain.fit(StreamOffset(), true, 5000, true, behind, &payload));
  EXPECT_TRUE(packing.fit(StreamOffset(), true, 5000, true, behind, &payload));
  EXPECT_LE(packing.of(StreamOffset(), kTaggedHeader + payload), behind.bytes);
  EXPECT_FALSE(packing.fit(StreamOffset(), true, 5000, false, behind, &payload)) << "has begun";
}

// proves: E-24
TEST(FpduSizes, AnFpduLargerThanItsSegmentIsCutOnlyWithMustCut) {
  const FpduSizes sizes = sizes_at(1460);
  std::uint32_t payload = 0;
  EXPECT_FALSE(sizes.fit(StreamOffset(), true, 5000, true, {100, true, false}, &payload));
  EXPECT_TRUE(sizes.fit(StreamOffset(), true, 5000, true, {100, true, true}, &payload));
  EXPECT_EQ(payload, sizes.most(true)) << "below the smallest MULPDU alignment is given up";
  EXPECT_TRUE(sizes.fit(StreamOffset(), true, 5000, true, {800, true, true}, &payload));
  EXPECT_LE(sizes.of(StreamOffset(), kTaggedHeader + payload), 800u);
}

}  // namespace
}  // namespace urnic::ddp
