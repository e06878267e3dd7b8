#include "fastpath/validation_unit.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/inet_checksum.h"
#include "base/rng.h"
#include "mpa/fpdu.h"
#include "tests/fastpath/fpdu_maker.h"

namespace urnic::fastpath {
namespace {

using testing::append;
using testing::Bytes;
using testing::make_fpdu;
using testing::random_bytes;
using testing::random_fpdu;

void expect_sum(const Validation& v, ByteView payload) {
  EXPECT_EQ(inet_fold(v.sum), inet_fold(inet_sum_portable(payload)));
}

// proves: R-68
TEST(ValidationUnit, OneAlignedFpduOfEveryLengthResidue) {
  Rng rng(1);
  Validation v;
  for (std::size_t n = 0; n < 200; ++n) {
    const Bytes p = random_fpdu(rng, n);
    validate(p, v);
    ASSERT_EQ(v.frames.size(), 1u);
    EXPECT_EQ(v.frames[0].status, FrameStatus::Valid) << n;
    EXPECT_EQ(v.frames[0].offset, 0u);
    EXPECT_EQ(v.frames[0].length, p.size());
    EXPECT_TRUE(v.passed());
    expect_sum(v, p);
  }
}

// proves: R-10
TEST(ValidationUnit, SeveralFpdusInOneSegmentInOrder) {
  Rng rng(2);
  Validation v;
  Bytes p;
  std::vector<std::uint32_t> offsets;
  for (const std::size_t n : {14u, 15u, 16u, 17u, 400u, 0u, 700u}) {
    offsets.push_back(static_cast<std::uint32_t>(p.size()));
    append(p, random_fpdu(rng, n));
  }
  validate(p, v);
  ASSERT_EQ(v.frames.size(), offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    EXPECT_EQ(v.frames[i].offset, offsets[i]);
    EXPECT_EQ(v.frames[i].status, FrameStatus::Valid);
  }
  EXPECT_TRUE(v.all_valid);
  expect_sum(v, p);
}

// proves
TEST(ValidationUnit, TheWalkEndsAtTheFirstInvalidFrame) {
  Rng rng(3);
  for (std::size_t bad = 0; bad < 4; ++bad) {
    Bytes p;
    std::size_t where = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      if (i == bad) where = p.size() + 2 + rng.below(100);
      append(p, random_fpdu(rng, 100));
    }
    p[where] ^= 0x10;
    Validation v;
    validate(p, v);
    ASSERT_EQ(v.frames.size(), bad + 1);
    for (std::size_t i = 0; i < bad; ++i) EXPECT_EQ(v.frames[i].status, FrameStatus::Valid);
    EXPECT_EQ(v.frames[bad].status, FrameStatus::Invalid);
    EXPECT_FALSE(v.passed());
    expect_sum(v, p);
  }
}

// proves
TEST(ValidationUnit, AFrameThatRunsPastThePayloadIsTooLong) {
  Rng rng(4);
  Bytes p = random_fpdu(rng, 50);
  const Bytes cut = random_fpdu(rng, 1000);
  const auto at = static_cast<std::uint32_t>(p.size());
  append(p, ByteView(cut).first(600));
  Validation v;
  validate(p, v);
  ASSERT_EQ(v.frames.size(), 2u);
  EXPECT_EQ(v.frames[1].status, FrameStatus::TooLong);
  EXPECT_EQ(v.frames[1].offset, at);
  EXPECT_EQ(v.frames[1].length, cut.size()) << "what the length field asks for";
  EXPECT_FALSE(v.passed());
  expect_sum(v, p);
}

// proves: R-70
TEST(ValidationUnit, ATailTooSmallForAFrameIsTooLong) {
  Rng rng(5);
  for (std::size_t tail = 1; tail < 8; ++tail) {
    for (const bool leading : {false, true}) {
      Bytes p;
      if (leading) append(p, random_fpdu(rng, 33));
      append(p, Bytes(tail, 0));  // zero: a length field of the smallest frame
      Validation v;
      validate(p, v);
      ASSERT_EQ(v.frames.size(), leading ? 2u : 1u);
      EXPECT_EQ(v.frames.back().status, FrameStatus::TooLong) << tail;
      EXPECT_EQ(v.frames.back().length, 8u);
      EXPECT_FALSE(v.passed());
      expect_sum(v, p);
    }
  }
}

// proves: R-24
TEST(ValidationUnit, AnInvalidFrameIsReportedBeforeATooLongTail) {
  Rng rng(6);
  Bytes p = random_fpdu(rng, 100);
  p[20] ^= 1;
  append(p, Bytes{0xff, 0xff, 1, 2, 3});
  Validation v;
  validate(p, v);
  ASSERT_EQ(v.frames.size(), 1u);
  EXPECT_EQ(v.frames[0].status, FrameStatus::Invalid);
  expect_sum(v, p);
}

// proves: R-84
TEST(ValidationUnit, EveryBitOfAFrameCounts) {
  Rng rng(7);
  const Bytes good = random_fpdu(rng, 61);
  Validation v;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes p = good;
    p[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    validate(p, v);
    EXPECT_FALSE(v.passed()) << "bit " << bit;
    expect_sum(v, p);
  }
}

TEST(ValidationUnit, TheLargestFpduAndTheSmallest) {
  Rng rng(8);
  Bytes p = random_fpdu(rng, mpa::kMaxUlpdu);
  Validation v;
  validate(p, v);
  EXPECT_TRUE(v.passed());
  EXPECT_EQ(v.frames[0].length, mpa::fpdu_size(mpa::kMaxUlpdu));
  expect_sum(v, p);
  p = make_fpdu({});
  validate(p, v);
  EXPECT_TRUE(v.passed());
  EXPECT_EQ(v.frames[0].length, 8u);
}

// proves: R-72
TEST(ValidationUnit, AnyBytesAreChecksummedAndClassified) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed);
    // Exactly sized on the heap, so that a sanitizer detects any read beyond the end.
    Bytes p = random_bytes(rng, 1 + rng.below(rng.chance(0.2) ? 9000 : 64));
    if (rng.chance(0.5) && p.size() > 2)
      store_be16(p.data(), static_cast<std::uint16_t>(rng.below(40)));
    Validation v;
    validate(p, v);
    ASSERT_FALSE(v.frames.empty());
    EXPECT_FALSE(v.passed());
    expect_sum(v, p);
  }
}

TEST(ValidationUnit, AResultHoldsNothingOfThePreviousOne) {
  Rng rng(9);
  Validation v;
  Bytes many;
  for (int i = 0; i < 20; ++i) append(many, random_fpdu(rng, 30));
  validate(many, v);
  ASSERT_EQ(v.frames.size(), 20u);
  const FrameResult* storage = v.frames.data();
  const Bytes one = random_fpdu(rng, 30);
  validate(one, v);
  EXPECT_EQ(v.frames.size(), 1u);
  EXPECT_EQ(v.frames.data(), storage) << "nothing is allocated again";
  EXPECT_TRUE(v.passed());
  const Bytes bad{0xff};
  validate(bad, v);
  EXPECT_FALSE(v.passed());
}

// RFC 5044, figure 5 without its marker: Send, MSN 1, 24 zero bytes.
TEST(ValidationUnit, GoldenFpduWithoutMarker) {
  Bytes p = {0x00, 0x2a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
  p.resize(44, 0);
  append(p, Bytes{0xb7, 0x24, 0x3e, 0xc3});
  Validation v;
  validate(p, v);
  EXPECT_TRUE(v.passed());
  expect_sum(v, p);
}

}  // namespace
}  // namespace urnic::fastpath
