#include "mpa/framing.h"

#include <gtest/gtest.h>

#include <string>

#include "base/crc32c.h"
#include "base/inet_checksum.h"
#include "base/rng.h"
#include "mpa/builder.h"
#include "support/golden.h"
#include "support/random_bytes.h"

namespace urnic::mpa {
namespace {

using test::Bytes;
using test::random_bytes;
using test::to_hex;

constexpr Policy kAll[] = {Policy::NoMarkers, Policy::Markers, Policy::AbsoluteMarkers,
                           Policy::ModifiedLength};
constexpr Policy kMarked[] = {Policy::Markers, Policy::AbsoluteMarkers, Policy::ModifiedLength};

Bytes built(Policy policy, std::uint32_t pos, ByteView ulpdu, std::size_t header = 0,
            bool crc = true) {
  Bytes out(framed_size(policy, pos, static_cast<std::uint32_t>(ulpdu.size())), 0xee);
  const ByteView payload = ulpdu.subspan(header);
  const Built b = build_framed(out.data(), policy, pos, ulpdu.first(header), {&payload, 1}, crc);
  EXPECT_EQ(b.len, out.size());
  EXPECT_EQ(inet_fold(b.sum), inet_fold(inet_sum_portable(out)));
  return out;
}

TEST(Framing, NamesAreThoseOfTheConfiguration) {
  for (const Policy p : kAll) EXPECT_EQ(policy_by_name(policy_name(p)), p);
  EXPECT_EQ(policy_name(Policy::AbsoluteMarkers), "absolute-markers");
  EXPECT_FALSE(policy_by_name("fig3").has_value());
}

TEST(Framing, BuildsTheGoldenFpdusWithMarkers_RFC5044_4_3) {
  for (const auto& g : test::read_golden("fpdu-markers.txt")) {
    SCOPED_TRACE(g.name);
    const auto pos = static_cast<std::uint32_t>(std::stoul(g.remark));
    Bytes ulpdu(g.bytes.size());
    ulpdu.resize(*strip_framed(Policy::Markers, g.bytes, pos, ulpdu.data()));
    EXPECT_EQ(to_hex(built(Policy::Markers, pos, ulpdu)), to_hex(g.bytes));
    EXPECT_EQ(to_hex(built(Policy::AbsoluteMarkers, pos, ulpdu)), to_hex(g.bytes));
  }
}

// proves: R-71
TEST(Framing, BuildingInOnePassEqualsInsertingMarkersLater) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Bytes ulpdu = random_bytes(rng, rng.below(seed % 8 == 0 ? 9001 : 1200));
    const auto pos = static_cast<std::uint32_t>(rng.below(256)) * 4;
    const bool crc = rng.chance(0.8);
    Bytes plain(fpdu_size(static_cast<std::uint32_t>(ulpdu.size())));
    build_fpdu(plain.data(), ulpdu, {}, crc);
    Bytes want(marked_size(pos, static_cast<std::uint32_t>(ulpdu.size())));
    ASSERT_EQ(insert_markers(plain, pos, crc, want.data()), want.size());
    const std::size_t header = rng.below(std::min<std::size_t>(ulpdu.size(), 90) + 1);
    ASSERT_EQ(to_hex(built(Policy::Markers, pos, ulpdu, header, crc)), to_hex(want));
  }
}

// proves: R-79
TEST(Framing, TheUlpduIsExtractedAtAnyLengthAndPosition) {
  Rng rng(3);
  const Bytes data = random_bytes(rng, 2100);
  for (const Policy policy : kAll) {
    for (std::uint32_t pos = 0; pos < 512; pos += 4) {
      for (std::uint32_t n = pos % 28; n <= 2100; n += 1 + n / 7) {
        const ByteView ulpdu = ByteView(data).first(n);
        const Bytes f = built(policy, pos, ulpdu);
        const auto shape = frame_shape(policy, f, pos);
        ASSERT_TRUE(shape.has_value());
        ASSERT_TRUE(shape->possible);
        ASSERT_EQ(shape->size, f.size());
        ASSERT_EQ(shape->ulpdu, n);
        ASSERT_EQ(check_framed(policy, f, pos, true), MarkedFpdu::Good);
        Bytes out(f.size());
        ASSERT_EQ(strip_framed(policy, f, pos, out.data()), n);
        ASSERT_TRUE(std::equal(ulpdu.begin(), ulpdu.end(), out.begin()))
            << policy_name(policy) << " at " << pos << " of " << n;
      }
    }
  }
}

TEST(Framing, StrippingInPlaceIsAllowed) {
  Rng rng(4);
  const Bytes ulpdu = random_bytes(rng, 1500);
  for (const Policy policy : kAll) {
    Bytes f = built(policy, 40, ulpdu);
    ASSERT_EQ(strip_framed(policy, f, 40, f.data()), 1500u);
    EXPECT_TRUE(std::equal(ulpdu.begin(), ulpdu.end(), f.begin()));
  }
}

TEST(Framing, Q21_TheModifiedLengthHoldsWordsAndPad) {
  Rng rng(5);
  for (std::uint32_t n = 0; n < 40; ++n) {
    const Bytes f = built(Policy::ModifiedLength, 20, random_bytes(rng, n));
    const std::uint16_t field = load_be16(f.data());
    EXPECT_EQ(field & 3, pad_of(n));
    EXPECT_EQ(field & ~3, static_cast<int>(f.size())) << "no marker: the frame is all of it";
  }
  // a leading marker does not count, the others do.
  const Bytes f = built(Policy::ModifiedLength, 0, random_bytes(rng, 1000));
  EXPECT_EQ(load_be32(f.data()), 0u);
  EXPECT_EQ(modified_frame(load_be16(f.data() + 4)), f.size() - 4);
}

TEST(Framing, ALengthThatNoSenderMakesIsImpossible) {
  for (std::uint32_t field = 0; field < 65536; ++field) {
    for (const std::uint32_t pos : {4u, 500u, 504u, 508u, 0u}) {
      Bytes b(8, 0);
      store_be16(b.data() + (pos == 0 ? 4 : 0), static_cast<std::uint16_t>(field));
      const auto s = frame_shape(Policy::ModifiedLength, b, pos);
      ASSERT_TRUE(s.has_value());
      if (!s->possible) continue;
      // A possible length is exactly one that a sender of that ULPDU would have made.
      ASSERT_EQ(framed_size(Policy::ModifiedLength, pos, s->ulpdu), s->size) << field;
      ASSERT_EQ(pad_of(s->ulpdu), field & 3u);
    }
  }
}

TEST(Framing, AWrongMarkerPointerIsFoundDespiteACorrectCrc_RFC5044_8) {
  Rng rng(6);
  for (const Policy policy : kMarked) {
    Bytes f = built(policy, 8, random_bytes(rng, 900));
    store_be16(f.data() + 504 + 2, 500);
    EXPECT_EQ(check_framed(policy, f, 8, true), MarkedFpdu::BadCrc);
    store_le32(f.data() + f.size() - 4, crc32c(ByteView(f).first(f.size() - 4)));
    EXPECT_EQ(check_framed(policy, f, 8, true), MarkedFpdu::BadMarker);
  }
}

TEST(Framing, MulpduFitsWhereverTheFpduBegins) {
  for (const std::uint32_t emss : {536u, 1448u, 1460u, 8948u, 8960u, 65495u}) {
    for (const Policy policy : kAll) {
      const std::uint32_t n = framed_mulpdu(policy, emss);
      for (std::uint32_t pos = 0; pos < 512; pos += 4) {
        ASSERT_LE(framed_size(policy, pos, n), emss) << policy_name(policy) << ' ' << pos;
      }
    }
  }
}

TEST(Framing, AFrameTooLongForItsPointersIsNotBuilt) {
  const Bytes data(kMaxUlpdu, 1);
  std::uint8_t dst[1] = {0x5a};
  for (const Policy policy : kMarked) {
    const ByteView piece(data);
    EXPECT_EQ(build_framed(dst, policy, 4, {}, {&piece, 1}, true).len, 0u);
  }
  EXPECT_EQ(dst[0], 0x5a);
}

// proves: R-77
TEST(Framing, TheCorrectingFactorReachesTheNextWord) {
  for (std::uint32_t sn : {0u, 1u, 2u, 3u, 4u, 0xffffffffu, 0xfffffffeu, 0xfffffffdu}) {
    const std::uint32_t cf = correcting_factor(sn);
    EXPECT_LE(cf, 3u);
    EXPECT_EQ((sn + cf) % 4, 0u);
  }
}

// proves
TEST(Framing, TheGridBeginsAtStartNumOrAtSequenceNumberZero) {
  // E1 and E3 count from StartNum, E2 from sequence number 0.
  const Framing e1 = make_framing(Policy::Markers, 0xfffffff0u, 60);
  EXPECT_EQ(e1.pos(60), 0u);
  EXPECT_EQ(e1.pos(60 + 512) % 512, 0u);
  const Framing e2 = make_framing(Policy::AbsoluteMarkers, 0xfffffff0u, 60);
  EXPECT_EQ(e2.pos(16), 0u) << "the wrap of sequence numbers is a multiple of 512";
  EXPECT_EQ(e2.pos(60), 44u);
  EXPECT_EQ(make_framing(Policy::ModifiedLength, 7, 100).pos((std::uint64_t{1} << 32) + 100), 0u);
}

// All results stay within the given bytes, whatever these are.
TEST(Framing, AnyBytesAreCheckedWithoutOverrun) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    const Bytes b = random_bytes(rng, rng.below(700));
    const auto pos = static_cast<std::uint32_t>(rng.below(512));
    Bytes out(b.size());
    for (const Policy policy : kAll) {
      (void)check_framed(policy, b, pos & ~3u, rng.chance(0.5));
      const auto n = strip_framed(policy, b, pos & ~3u, out.data());
      EXPECT_LE(n.value_or(0), b.size());
    }
  }
}

}  // namespace
}  // namespace urnic::mpa
