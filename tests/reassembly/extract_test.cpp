#include "reassembly/extract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/rng.h"
#include "mpa/builder.h"
#include "mpa/fpdu.h"
#include "mpa/framing.h"
#include "tests/fastpath/fpdu_maker.h"
#include "tests/support/allocator.h"

namespace urnic::reassembly {
namespace {

using testing::append;
using testing::Bytes;
using testing::make_fpdu;
using testing::random_bytes;

StreamOffset at(std::uint64_t v) {
  return StreamOffset(v);
}

struct Receiver {
  explicit Receiver(std::uint64_t start = 0, bool crc = true) : extractor(crc), end(start) {
    buffer.reset(at(start));
  }
  // Stores one in-order segment; returns the extractor's last result.
  Extracted feed(ByteView segment) {
    EXPECT_TRUE(buffer.store(at(end), segment, true));
    end += segment.size();
    return drain();
  }
  Extracted drain() {
    for (;;) {
      ByteView ulpdu;
      std::uint32_t len = 0;
      const Extracted e = extractor.next(buffer, at(end), &ulpdu, &len);
      if (e != Extracted::Fpdu) return e;
      out.emplace_back(ulpdu.begin(), ulpdu.end());
      if (!marked) {
        EXPECT_EQ(len, mpa::fpdu_size(static_cast<std::uint32_t>(ulpdu.size())));
      }
      buffer.consume(buffer.read_position() + len);
    }
  }
  Pool pool{64u << 20};
  Buffer buffer{&pool, 1u << 20};
  Extractor extractor;
  std::uint64_t end;
  bool marked = false;
  std::vector<Bytes> out;
};

struct Stream {
  Bytes bytes;
  std::vector<Bytes> ulpdus;
  void add(Bytes ulpdu, bool crc = true) {
    append(bytes, make_fpdu(ulpdu, crc));
    ulpdus.push_back(std::move(ulpdu));
  }
};

TEST(Extract, OneFpduPerSegmentIsReadInPlace) {
  Rng rng(1);
  Receiver r;
  Stream s;
  s.add(random_bytes(rng, 1442));
  EXPECT_EQ(r.feed(s.bytes), Extracted::NeedMore);
  EXPECT_EQ(r.out, s.ulpdus);
  EXPECT_TRUE(r.buffer.empty());
}

// proves: R-28
TEST(Extract, OneByteSegments) {
  Rng rng(2);
  Receiver r;
  Stream s;
  for (const std::size_t n : {0u, 1u, 2u, 3u, 14u, 15u, 100u, 1442u}) s.add(random_bytes(rng, n));
  for (const std::uint8_t byte : s.bytes) EXPECT_EQ(r.feed({&byte, 1}), Extracted::NeedMore);
  EXPECT_EQ(r.out, s.ulpdus);
}

TEST(Extract, LargestFpduSpansFiveChunks) {
  Rng rng(3);
  for (const std::size_t n : {65533u, 65534u, 65535u}) {
    Receiver r;
    Stream s;
    s.add(random_bytes(rng, n));
    for (std::size_t pos = 0; pos < s.bytes.size(); pos += 1460) {
      r.feed(ByteView(s.bytes).subspan(pos, std::min<std::size_t>(1460, s.bytes.size() - pos)));
    }
    EXPECT_EQ(r.out, s.ulpdus);
    EXPECT_EQ(r.pool.in_use(), 0u);
  }
}

// proves: R-29
TEST(Extract, AWrongCrcIsReportedAndNoUlpduIsReturned) {
  Rng rng(4);
  Stream s;
  s.add(random_bytes(rng, 500));
  for (std::size_t i = 0; i < s.bytes.size(); ++i) {
    if (i < 2) continue;  // another length needs other bytes, see below
    Receiver r;
    Bytes bad = s.bytes;
    bad[i] ^= static_cast<std::uint8_t>(1u << rng.below(8));
    EXPECT_EQ(r.feed(bad), Extracted::BadCrc) << "byte " << i;
    EXPECT_TRUE(r.out.empty());
  }
}

// proves: R-30
TEST(Extract, ACorruptedLengthEndsInABadCrc) {
  Rng rng(5);
  Stream s;
  for (int i = 0; i < 200; ++i) s.add(random_bytes(rng, 500));
  Bytes bad = s.bytes;
  bad[0] ^= 0x80;  // far too long
  Receiver r;
  Extracted last = Extracted::NeedMore;
  for (std::size_t pos = 0; pos < bad.size() && last == Extracted::NeedMore; pos += 1000) {
    last = r.feed(ByteView(bad).subspan(pos, std::min<std::size_t>(1000, bad.size() - pos)));
  }
  EXPECT_EQ(last, Extracted::BadCrc);
  EXPECT_TRUE(r.out.empty());
}

TEST(Extract, PadBytesAreIgnoredButCovered) {
  Rng rng(6);
  const Bytes ulpdu = random_bytes(rng, 15);  // 3 bytes of pad
  Bytes f(2 + 15);
  store_be16(f.data(), 15);
  std::copy(ulpdu.begin(), ulpdu.end(), f.begin() + 2);
  while (f.size() % 4 != 0) f.push_back(0xee);
  std::uint8_t field[4];
  store_le32(field, crc32c(f));
  append(f, field);
  Receiver r;
  r.feed(f);
  ASSERT_EQ(r.out.size(), 1u);
  EXPECT_EQ(r.out[0], ulpdu);
}

// proves: E-2
TEST(Extract, WithoutCrcTheFieldIsNotChecked) {
  Rng rng(7);
  Receiver r(0, false);
  Stream s;
  s.add(random_bytes(rng, 333), false);
  s.add(random_bytes(rng, 20), false);
  r.feed(s.bytes);
  EXPECT_EQ(r.out, s.ulpdus);
}

// proves: R-51
TEST(Extract, BytesBeyondTheInOrderEndAreNotUsed) {
  Rng rng(8);
  Stream s;
  s.add(random_bytes(rng, 1000));
  Receiver r;
  // The tail is stored, the middle is not.
  const ByteView v(s.bytes);
  ASSERT_TRUE(r.buffer.store(at(0), v.first(400), true));
  ASSERT_TRUE(r.buffer.store(at(600), v.subspan(600), false));
  r.end = 400;
  EXPECT_EQ(r.drain(), Extracted::NeedMore);
  EXPECT_TRUE(r.out.empty());
  ASSERT_TRUE(r.buffer.store(at(400), v.subspan(400, 200), true));
  r.end = s.bytes.size();
  r.drain();
  EXPECT_EQ(r.out, s.ulpdus);
}

class ExtractCuts : public ::testing::TestWithParam<std::uint64_t> {};

// proves: R-28
TEST_P(ExtractCuts, AnyCutOfTheStreamGivesTheSameUlpdus) {
  SCOPED_TRACE(::testing::Message() << "seed " << GetParam());
  Rng rng(GetParam());
  Stream s;
  while (s.bytes.size() < 300000) {
    s.add(random_bytes(rng, rng.chance(0.05) ? rng.below(65536) : rng.below(3000)));
  }
  const std::uint64_t start = rng.below(1u << 20);
  Receiver r(start);
  const std::uint64_t largest = 1 + rng.below(rng.chance(0.5) ? 100 : 20000);
  for (std::size_t pos = 0; pos < s.bytes.size();) {
    const std::size_t n = std::min<std::size_t>(1 + rng.below(largest), s.bytes.size() - pos);
    ASSERT_EQ(r.feed(ByteView(s.bytes).subspan(pos, n)), Extracted::NeedMore);
    pos += n;
  }
  EXPECT_EQ(r.out, s.ulpdus);
  EXPECT_TRUE(r.buffer.empty());
  EXPECT_EQ(r.pool.in_use(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExtractCuts, ::testing::Range<std::uint64_t>(1, 17));

TEST(NextFpdu, IsFoundInPlaceInContiguousBytes) {
  for (const bool crc : {true, false}) {
    for (const std::uint32_t n : {0u, 1u, 14u, 1000u, 65535u}) {
      const Bytes fpdu = make_fpdu(Bytes(n, 0x5a), crc);
      Bytes bytes = fpdu;
      append(bytes, Bytes(7, 1));  // later bytes are ignored
      ByteView ulpdu;
      std::uint32_t size = 0;
      ASSERT_EQ(next_fpdu(bytes, crc, &ulpdu, &size), Extracted::Fpdu) << n;
      EXPECT_EQ(size, fpdu.size());
      EXPECT_EQ(ulpdu.size(), n);
      EXPECT_EQ(ulpdu.data(), bytes.data() + mpa::kLengthField);
      for (const std::size_t part : {std::size_t{0}, std::size_t{1}, fpdu.size() - 1}) {
        EXPECT_EQ(next_fpdu(ByteView(bytes).first(part), crc, &ulpdu, &size), Extracted::NeedMore);
      }
      bytes[fpdu.size() - 1] ^= 1;
      EXPECT_EQ(next_fpdu(bytes, crc, &ulpdu, &size), crc ? Extracted::BadCrc : Extracted::Fpdu);
    }
  }
}

// ---- policies with markers

class ExtractPolicies : public ::testing::TestWithParam<mpa::Policy> {
 protected:
  // ULPDUs of random lengths as they lie in a stream whose first FPDU is at `start`.
  void build(Rng& rng, int count, std::uint64_t start, std::size_t length = 0) {
    framing = mpa::make_framing(GetParam(), static_cast<std::uint32_t>(rng.next()) & ~3u, start);
    for (int i = 0; i < count; ++i) {
      const std::size_t n = length != 0 ? length : rng.below(i % 7 == 0 ? 9000 : 700);
      ulpdus.push_back(random_bytes(rng, n));
      const std::uint32_t pos = framing.pos(start + bytes.size());
      Bytes f(mpa::framed_size(GetParam(), pos, static_cast<std::uint32_t>(ulpdus.back().size())));
      ASSERT_EQ(mpa::build_framed(f.data(), GetParam(), pos, ulpdus.back(), {}, true).len,
                f.size());
      append(bytes, f);
    }
  }
  void prepare(Receiver& r) {
    r.extractor.set_framing(framing);
    r.marked = true;
  }
  mpa::Framing framing;
  std::vector<Bytes> ulpdus;
  Bytes bytes;
};

INSTANTIATE_TEST_SUITE_P(Framing, ExtractPolicies,
                         ::testing::Values(mpa::Policy::Markers, mpa::Policy::AbsoluteMarkers,
                                           mpa::Policy::ModifiedLength),
                         [](const auto& p) {
                           std::string name(mpa::policy_name(p.param));
                           std::erase(name, '-');
                           return name;
                         });

// proves: R-28
TEST_P(ExtractPolicies, AnyCutGivesTheUlpdusWithoutTheirMarkers) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    ulpdus.clear();
    bytes.clear();
    const std::uint64_t start = rng.below(64) * 4;
    build(rng, 40, start);
    Receiver r(start);
    prepare(r);
    const std::size_t most = 1 + rng.below(3000);
    for (ByteView rest = bytes; !rest.empty();) {
      const std::size_t n = std::min<std::size_t>(rest.size(), 1 + rng.below(most));
      ASSERT_EQ(r.feed(rest.first(n)), Extracted::NeedMore);
      rest = rest.subspan(n);
    }
    ASSERT_EQ(r.out, ulpdus);
    EXPECT_TRUE(r.buffer.empty());
  }
}

// The scratch buffer stays while part of an FPDU waits, and is freed otherwise.
TEST_P(ExtractPolicies, TheScratchBufferIsKeptWhileAnFpduIsIncomplete) {
  Rng rng(8);
  build(rng, 3, 0, 1000);
  Receiver r;
  prepare(r);
  const std::uint32_t first = mpa::frame_shape(GetParam(), bytes, framing.pos(0))->size;
  r.out.reserve(8);
  EXPECT_EQ(r.feed(ByteView(bytes).first(first + 1)), Extracted::NeedMore);
  ByteView ulpdu;
  std::uint32_t length = 0;
  const std::uint64_t held = urnic::testing::allocated_bytes();
  EXPECT_EQ(r.extractor.next(r.buffer, at(r.end), &ulpdu, &length), Extracted::NeedMore);
  EXPECT_EQ(urnic::testing::allocated_bytes(), held);
  r.extractor.run_dry();
  EXPECT_GE(held - urnic::testing::allocated_bytes(), first) << "of a frame with markers";
  EXPECT_EQ(r.feed(ByteView(bytes).subspan(first + 1)), Extracted::NeedMore);
  EXPECT_EQ(r.out.size(), 3u);
}

// proves: R-29
TEST_P(ExtractPolicies, AWrongByteIsABadCrcAndAWrongPointerIsABadMarker) {
  Rng rng(5);
  build(rng, 1, 0, 1200);
  for (const bool pointer : {false, true}) {
    Bytes bad = bytes;
    const std::uint32_t first = mpa::to_marker(framing.pos(0));
    const auto shape = mpa::frame_shape(GetParam(), bad, framing.pos(0));
    ASSERT_GT(shape->size, first + 4);
    if (pointer) {
      bad[first + 3] ^= 8;
      store_le32(bad.data() + shape->size - 4, crc32c(ByteView(bad).first(shape->size - 4)));
    } else {
      bad[shape->size / 2] ^= 1;
    }
    Receiver r;
    prepare(r);
    EXPECT_EQ(r.feed(bad), pointer ? Extracted::BadMarker : Extracted::BadCrc);
    EXPECT_TRUE(r.out.empty());
  }
}

// FPDUs that the validation unit found valid are not read again for their CRC. Their markers are
// checked, and so is the CRC of later FPDUs.
// proves: R-68
TEST_P(ExtractPolicies, TheCrcOfAValidatedFpduIsNotComputedAgain) {
  Rng rng(6);
  build(rng, 2, 0, 1200);
  const std::uint32_t first = mpa::frame_shape(GetParam(), bytes, framing.pos(0))->size;
  for (const bool validated : {false, true}) {
    Bytes bad = bytes;
    bad[first - 1] ^= 1;       // of the first CRC
    bad[bad.size() - 1] ^= 1;  // of the second
    Receiver r;
    prepare(r);
    r.extractor.checked(StreamOffset(validated ? first : first - 1));
    EXPECT_EQ(r.feed(bad), Extracted::BadCrc);
    EXPECT_EQ(r.out.size(), validated ? 1u : 0u);
    bad[mpa::to_marker(framing.pos(0)) + 3] ^= 8;
    Receiver marker;
    prepare(marker);
    marker.extractor.checked(StreamOffset(first));
    EXPECT_EQ(marker.feed(bad), Extracted::BadMarker);
  }
}

// Reported at once: the bytes that the length announces may never arrive.
// proves: R-78
TEST(Extract, AnImpossibleLengthIsABadCrc) {
  int impossible = 0;
  for (std::uint32_t field = 0; field < 4096; ++field) {
    const Bytes head = {
        static_cast<std::uint8_t>(field >> 8), static_cast<std::uint8_t>(field), 1, 2, 3, 4, 5, 6};
    if (mpa::frame_shape(mpa::Policy::ModifiedLength, head, 4)->possible) continue;
    ++impossible;
    Receiver r;
    r.extractor.set_framing({mpa::Policy::ModifiedLength, 4});
    EXPECT_EQ(r.feed(head), Extracted::BadCrc) << field;
  }
  EXPECT_GT(impossible, 0);
}

}  // namespace
}  // namespace urnic::reassembly
