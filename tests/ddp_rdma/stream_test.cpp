// Two streams connected to each other, with segments in order, out of order, and cut anywhere, for
// many seeds.
#include <gtest/gtest.h>

#include "ddp_rdma/exchange.h"

namespace urnic::ddp::test {
namespace {

void run_seeds(std::uint64_t from, int count, const Options& o) {
  std::uint64_t most = 0, placed_early = 0, repeated = 0;
  for (int k = 0; k < count; ++k) {
    const std::uint64_t seed = from + static_cast<std::uint64_t>(k);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Exchange e(seed, o);
    e.run();
    if (::testing::Test::HasFailure()) return;
    most = std::max(most, e.most_reads());
    placed_early += e.placed_early();
    repeated += e.repeated();
  }
  EXPECT_GT(repeated, 100u);
  EXPECT_EQ(placed_early > 100, o.out_of_order);
  EXPECT_EQ(most, kOrd) << "the limit on Reads was never met";
}

// E-20..E-24 with markers: rebuilt or recut bytes equal those sent first, including markers.
class StreamPolicies : public ::testing::TestWithParam<mpa::Policy> {};
INSTANTIATE_TEST_SUITE_P(Framing, StreamPolicies,
                         ::testing::Values(mpa::Policy::Markers, mpa::Policy::AbsoluteMarkers,
                                           mpa::Policy::ModifiedLength),
                         [](const auto& p) {
                           std::string name(mpa::policy_name(p.param));
                           std::erase(name, '-');
                           return name;
                         });

// proves: R-102
TEST_P(StreamPolicies, RebuiltAndRecutSegmentsEqualThoseSentFirst) {
  for (const bool cut : {false, true}) {
    Options o;
    o.policy = GetParam();
    o.out_of_order = true;
    o.must_cut = cut;
    run_seeds(7000, 12, o);
  }
}

TEST(Stream, InOrderExchangeGivesTheRequestedResults) {
  run_seeds(1000, 25, {});
}

TEST(Stream, SegmentsCutAnywhereGiveTheSame) {
  Options o;
  o.must_cut = true;
  run_seeds(2000, 25, o);
}

// proves: R-102
TEST(Stream, OutOfOrderSegmentsGiveTheSame) {
  Options o;
  o.out_of_order = true;
  run_seeds(3000, 40, o);
}

TEST(Stream, OutOfOrderAndCutGiveTheSame) {
  Options o;
  o.out_of_order = true;
  o.must_cut = true;
  run_seeds(4000, 25, o);
}

// proves: E-14
TEST(Stream, MessageNumbersWrapAround) {
  Options o;
  o.first_msn = 0xFFFFFFF0;
  o.out_of_order = true;
  run_seeds(5000, 25, o);
}

TEST(Stream, SmallMessagesManyPerSegment) {
  Options o;
  o.max_len = 64;
  o.messages = 2000;
  o.out_of_order = true;
  run_seeds(6000, 10, o);
}

}  // namespace
}  // namespace urnic::ddp::test
