#include <gtest/gtest.h>

#include <string>

#include "base/inet_checksum.h"
#include "base/rng.h"
#include "fastpath/validation_unit.h"
#include "mpa/builder.h"
#include "tests/fastpath/fpdu_maker.h"

namespace urnic::fastpath {
namespace {

using mpa::Policy;
using testing::append;
using testing::Bytes;
using testing::random_bytes;

Bytes frame(Policy policy, std::uint32_t pos, ByteView ulpdu) {
  Bytes f(mpa::framed_size(policy, pos, static_cast<std::uint32_t>(ulpdu.size())));
  EXPECT_EQ(mpa::build_framed(f.data(), policy, pos, ulpdu, {}, true).len, f.size());
  return f;
}

void judge(Policy policy, ByteView payload, std::uint32_t pos, Validation& v) {
  if (policy == Policy::ModifiedLength) {
    validate_modified(payload, v);
  } else {
    validate_marked(payload, pos, v);
  }
  EXPECT_EQ(inet_fold(v.sum), inet_fold(inet_sum_portable(payload)));
}

class ValidationPolicies : public ::testing::TestWithParam<Policy> {};
INSTANTIATE_TEST_SUITE_P(Framing, ValidationPolicies,
                         ::testing::Values(Policy::Markers, Policy::AbsoluteMarkers,
                                           Policy::ModifiedLength),
                         [](const auto& p) {
                           std::string name(mpa::policy_name(p.param));
                           std::erase(name, '-');
                           return name;
                         });

// proves
TEST_P(ValidationPolicies, EveryPlaceAndLengthIsOneValidFrame) {
  Rng rng(1);
  const Bytes data = random_bytes(rng, 1800);
  Validation v;
  for (std::uint32_t pos = 0; pos < 512; pos += 4) {
    for (std::uint32_t n = pos % 11; n < 1800; n += 1 + n / 5) {
      const Bytes f = frame(GetParam(), pos, ByteView(data).first(n));
      judge(GetParam(), f, pos, v);
      ASSERT_TRUE(v.passed()) << pos << ' ' << n;
      ASSERT_EQ(v.frames.size(), 1u);
      check_markers(GetParam(), f, pos, v);
      ASSERT_TRUE(v.passed()) << pos << ' ' << n;
    }
  }
}

// proves: R-69
TEST_P(ValidationPolicies, SeveralFramesInOrderMarkersBetweenThemBelongToTheSecond) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const auto start = static_cast<std::uint32_t>(rng.below(128)) * 4;
    Bytes p;
    std::vector<std::uint32_t> starts;
    for (int i = 0; i < 8; ++i) {
      starts.push_back(static_cast<std::uint32_t>(p.size()));
      const auto pos = start + static_cast<std::uint32_t>(p.size());
      // Sometimes end exactly at the next marker.
      const std::uint32_t d = mpa::to_marker(pos);
      const std::size_t n = rng.chance(0.3) && d >= 8 ? d - 6 : rng.below(400);
      append(p, frame(GetParam(), pos, random_bytes(rng, n)));
    }
    Validation v;
    judge(GetParam(), p, start, v);
    check_markers(GetParam(), p, start, v);
    ASSERT_TRUE(v.passed()) << seed;
    ASSERT_EQ(v.frames.size(), starts.size());
    for (std::size_t i = 0; i < starts.size(); ++i) EXPECT_EQ(v.frames[i].offset, starts[i]);
  }
}

// proves: R-71
TEST_P(ValidationPolicies, EveryFlippedBitInvalidatesTheFrameAlsoInMarkers) {
  Rng rng(3);
  const Bytes good = frame(GetParam(), 500, random_bytes(rng, 61));
  Validation v;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes p = good;
    p[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    judge(GetParam(), p, 500, v);
    EXPECT_FALSE(v.passed()) << bit;
  }
}

// proves: R-70
TEST_P(ValidationPolicies, AFrameBeyondThePayloadAndATooSmallRestAreTooLong) {
  Rng rng(4);
  for (const std::uint32_t pos : {0u, 8u, 508u}) {
    const Bytes f = frame(GetParam(), pos, random_bytes(rng, 300));
    Validation v;
    for (std::size_t n = 1; n < f.size(); ++n) {
      judge(GetParam(), ByteView(f).first(n), pos, v);
      ASSERT_EQ(v.frames.size(), 1u);
      ASSERT_EQ(v.frames[0].status, FrameStatus::TooLong) << n;
      ASSERT_GT(v.frames[0].length, n) << "F0 > P";
    }
  }
}

TEST_P(ValidationPolicies, AnEmbeddedFrameIsDetectedByItsMissingMarkers) {
  // Payload bytes that form a whole frame with a correct CRC, placed so that a marker of the real
  // stream lies in them. That marker points at the start of the real frame.
  Rng rng(5);
  const Bytes fake = frame(GetParam(), 400, random_bytes(rng, 200));
  Bytes p = fake;
  store_be16(p.data() + 112 + 2, 412);  // as in the real stream
  store_le32(p.data() + p.size() - 4,
             crc32c_finish(crc32c_update_portable(kCrc32cInit, ByteView(p).first(p.size() - 4))));
  Validation v;
  judge(GetParam(), p, 400, v);
  EXPECT_TRUE(v.passed()) << "its CRC is good";
  check_markers(GetParam(), p, 400, v);
  EXPECT_FALSE(v.passed());
  EXPECT_EQ(v.frames.back().status, FrameStatus::BadMarker);
}

// proves: R-72
TEST_P(ValidationPolicies, AnyBytesAreChecksummedAndClassified) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    Bytes p = random_bytes(rng, 1 + rng.below(rng.chance(0.2) ? 9000 : 64));
    if (rng.chance(0.3)) std::fill_n(p.begin(), std::min<std::size_t>(4, p.size()), 0);
    const auto pos = static_cast<std::uint32_t>(rng.next());
    Validation v;
    judge(GetParam(), p, pos, v);
    ASSERT_FALSE(v.frames.empty());
    EXPECT_FALSE(v.passed());
    check_markers(GetParam(), p, pos, v);
  }
}

// proves: R-78
TEST(ValidationModified, AtStep100AZeroWordIsAMarkerTheNextHoldsTheLength) {
  Rng rng(6);
  const Bytes f = frame(Policy::ModifiedLength, 512, random_bytes(rng, 50));
  EXPECT_EQ(load_be32(f.data()), 0u);
  Validation v;
  validate_modified(f, v);
  EXPECT_TRUE(v.passed());
  // The same frame without its leading marker has another CRC, so it is not a frame.
  validate_modified(ByteView(f).subspan(4), v);
  EXPECT_FALSE(v.passed());
}

// proves: R-78
TEST(ValidationModified, NeedsNoContextWhereverTheGridLies) {
  Rng rng(7);
  const Bytes data = random_bytes(rng, 1400);
  for (std::uint32_t pos = 4; pos < 512; pos += 4) {  // the same call for every grid
    Validation v;
    validate_modified(frame(Policy::ModifiedLength, pos, data), v);
    ASSERT_TRUE(v.passed());
  }
}

// proves: R-75
TEST(ValidationMarked, TheWrongGridGivesNoFrame) {
  Rng rng(8);
  const Bytes f = frame(Policy::Markers, 300, random_bytes(rng, 1400));
  Validation v;
  validate_marked(f, 304, v);
  check_markers(Policy::Markers, f, 304, v);
  EXPECT_FALSE(v.passed());
}

}  // namespace
}  // namespace urnic::fastpath
