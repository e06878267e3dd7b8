#include "mpa/markers.h"

#include <gtest/gtest.h>

#include <string>

#include "base/crc32c.h"
#include "base/rng.h"
#include "mpa/builder.h"
#include "support/golden.h"
#include "support/random_bytes.h"

namespace urnic::mpa {
namespace {

using test::Bytes;
using test::random_bytes;
using test::to_hex;

Bytes plain_fpdu(ByteView ulpdu) {
  Bytes f(fpdu_size(static_cast<std::uint32_t>(ulpdu.size())));
  build_fpdu(f.data(), ulpdu, {}, true);
  return f;
}

Bytes with_markers(ByteView ulpdu, std::uint64_t pos) {
  Bytes out(marked_size(pos, static_cast<std::uint32_t>(ulpdu.size())), 0xee);
  EXPECT_EQ(insert_markers(plain_fpdu(ulpdu), pos, true, out.data()), out.size());
  return out;
}

// RFC 5044 4.3, implemented literally: before each 4-byte word, a marker if one is due.
Bytes reference(ByteView ulpdu, std::uint64_t pos) {
  const Bytes plain = plain_fpdu(ulpdu);
  Bytes out;
  std::size_t length_field = 0;
  const auto marker_if_due = [&](bool started) {
    if ((pos + out.size()) % kMarkerSpacing != 0) return;
    const std::size_t back = started ? out.size() - length_field : 0;
    out.insert(out.end(), {0, 0, static_cast<std::uint8_t>(back >> 8),
                           static_cast<std::uint8_t>(back & 0xff)});
  };
  for (std::size_t i = 0; i < plain.size() - kCrcField; i += 4) {
    marker_if_due(i != 0);
    if (i == 0) length_field = out.size();
    out.insert(out.end(), plain.begin() + i, plain.begin() + i + 4);
  }
  marker_if_due(true);
  const std::uint32_t crc = crc32c(out);
  out.resize(out.size() + kCrcField);
  store_le32(out.data() + out.size() - kCrcField, crc);
  return out;
}

void expect_round_trip(const Bytes& marked, std::uint64_t pos, ByteView ulpdu) {
  ASSERT_EQ(marked_fpdu_length(marked, pos), marked.size());
  ASSERT_EQ(check_marked(marked, pos, true), MarkedFpdu::Good);
  Bytes out(ulpdu.size());
  ASSERT_EQ(extract_marked(marked, pos, out.data()), ulpdu.size());
  ASSERT_EQ(to_hex(out), to_hex(ulpdu));
}

// proves: R-71
TEST(Markers, GoldenVectorsOutAndIn_RFC5044_4_3) {
  for (const auto& g : test::read_golden("fpdu-markers.txt")) {
    SCOPED_TRACE(g.name);
    const std::uint64_t pos = std::stoull(g.remark);
    ASSERT_EQ(check_marked(g.bytes, pos, true), MarkedFpdu::Good);
    Bytes ulpdu(g.bytes.size());
    const auto n = extract_marked(g.bytes, pos, ulpdu.data());
    ASSERT_TRUE(n.has_value());
    ulpdu.resize(*n);
    EXPECT_EQ(ulpdu[1], ulpdu[0] == 0xc1 ? 0x40 : 0x43);
    EXPECT_EQ(to_hex(with_markers(ulpdu, pos)), to_hex(g.bytes));
  }
}

TEST(Markers, CrcChangesWithoutTheLeadingMarker_RFC5044_4_4) {
  const auto m1 = test::golden("fpdu-markers.txt", "M1");
  const ByteView plain = ByteView(m1.bytes).subspan(4);
  EXPECT_EQ(crc32c(plain.first(plain.size() - 4)), 0xc33e24b7u);  // on the wire b7 24 3e c3
}

TEST(Markers, MulpduWithMarkers_RFC5044_4_5) {
  EXPECT_EQ(marked_mulpdu(536), 522u);
  EXPECT_EQ(marked_mulpdu(1448), 1430u);
  EXPECT_EQ(marked_mulpdu(1460), 1442u);
  EXPECT_EQ(marked_mulpdu(8948), 8870u);
  EXPECT_EQ(marked_mulpdu(8960), 8882u);
  EXPECT_EQ(marked_mulpdu(0), kMinMulpdu);
}

TEST(Markers, MulpduFitsTheSegmentWhereverItStarts) {
  for (std::uint32_t emss = 160; emss <= 9100; emss += emss < 1600 ? 1 : 97) {
    for (std::uint64_t pos = 0; pos < kMarkerSpacing; pos += 4) {
      ASSERT_LE(marked_size(pos, marked_mulpdu(emss)), emss) << emss << " at " << pos;
    }
  }
}

// Compares the formula of the frame size with a walk over the stream, at all 128 starts.
// proves: R-71
TEST(Markers, SizeFormulaAgreesWithWalkingTheStream) {
  for (std::uint64_t pos = 0; pos < kMarkerSpacing; pos += 4) {
    for (std::uint32_t n = 0; n <= 1600; n += n < 40 ? 1 : 3) {
      std::uint32_t size = 0;
      for (std::uint32_t left = fpdu_size(n); left != 0; left -= 4) {
        if ((pos + size) % kMarkerSpacing == 0) size += kMarker;
        size += 4;
      }
      ASSERT_EQ(marked_size(pos, n), size) << n << " bytes at " << pos;
    }
  }
}

// proves: R-71
TEST(Markers, InsertThenStripAtEveryStart) {
  Rng rng(5);
  const Bytes data = random_bytes(rng, 1500);
  for (std::uint64_t pos = 0; pos < kMarkerSpacing; pos += 4) {
    for (const std::size_t n : {0,   1,   14,  18,  28,  46,  484,  488,  492,  496,
                                500, 504, 506, 508, 512, 996, 1000, 1012, 1016, 1442}) {
      SCOPED_TRACE(std::to_string(n) + " bytes at " + std::to_string(pos));
      const ByteView ulpdu(data.data(), n);
      const Bytes marked = with_markers(ulpdu, pos);
      ASSERT_EQ(to_hex(marked), to_hex(reference(ulpdu, pos)));
      expect_round_trip(marked, pos, ulpdu);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Markers, RandomFpdusBackToBackMakeOneStreamWithAMarkerEvery512Bytes) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    std::uint64_t pos = rng.below(1u << 20) * kMarkerSpacing;  // also far into the stream
    const std::uint64_t start = pos;
    Bytes stream;
    std::vector<Bytes> sent;
    for (int i = 0; i < 20; ++i) {
      sent.push_back(random_bytes(rng, rng.below(3000)));
      const Bytes marked = with_markers(sent.back(), pos);
      stream.insert(stream.end(), marked.begin(), marked.end());
      pos += marked.size();
    }
    ByteView rest = stream;
    for (const Bytes& ulpdu : sent) {
      const std::uint64_t at = start + stream.size() - rest.size();
      const auto n = marked_fpdu_length(rest, at);
      ASSERT_TRUE(n && *n <= rest.size());
      expect_round_trip(Bytes(rest.begin(), rest.begin() + *n), at, ulpdu);
      if (HasFatalFailure()) return;
      rest = rest.subspan(*n);
    }
    EXPECT_TRUE(rest.empty());
    for (std::size_t at = 0; at < stream.size(); at += kMarkerSpacing) {
      EXPECT_EQ(parse_marker(stream.data() + at).reserved, 0);
    }
  }
}

TEST(Markers, EveryMarkerOfAnFpduPointsToOneLengthField) {
  // RFC 5044 4.3: an FPDU that began 368 bytes before a marker has 368, then 880.
  const Bytes ulpdu(1200, 1);
  const Bytes marked = with_markers(ulpdu, 512 - 368);
  EXPECT_EQ(parse_marker(marked.data() + 368).fpdu_pointer, 368);
  EXPECT_EQ(parse_marker(marked.data() + 880).fpdu_pointer, 880);
  // After a leading marker the length field is 4 bytes later: 508, 1020.
  const Bytes led = with_markers(ulpdu, 1024);
  EXPECT_EQ(parse_marker(led.data()).fpdu_pointer, 0);
  EXPECT_EQ(parse_marker(led.data() + 512).fpdu_pointer, 508);
  EXPECT_EQ(parse_marker(led.data() + 1024).fpdu_pointer, 1020);
}

TEST(Markers, WrongPointerWithARightCrcIsTheMarkerError_RFC5044_8) {
  const Bytes ulpdu(1200, 7);
  for (const std::uint64_t pos : {0, 144, 508, 512}) {
    Bytes m = with_markers(ulpdu, pos);
    const std::size_t at = to_marker(pos) + kMarkerSpacing;
    const auto reseal = [&] {
      store_le32(m.data() + m.size() - 4, crc32c(ByteView(m).first(m.size() - 4)));
    };
    m[at + 3] ^= 4;
    EXPECT_EQ(check_marked(m, pos, true), MarkedFpdu::BadCrc);
    reseal();
    EXPECT_EQ(check_marked(m, pos, true), MarkedFpdu::BadMarker);
    EXPECT_EQ(check_marked(m, pos, false), MarkedFpdu::BadMarker);
    // The low two bits of the pointer and the reserved half are ignored.
    m[at + 3] ^= 4 | 3;
    m[at] = 0x12;
    reseal();
    EXPECT_EQ(check_marked(m, pos, true), MarkedFpdu::Good);
  }
}

TEST(Markers, FpduTooLongToPointBackIsNotBuilt) {
  const Bytes ulpdu(kMaxUlpdu, 0);
  Bytes dst(marked_size(0, kMaxUlpdu) + 4, 0xee);
  EXPECT_EQ(insert_markers(plain_fpdu(ulpdu), 0, true, dst.data()), 0u);
  EXPECT_EQ(dst[0], 0xee);
  // The longest FPDU whose last marker can still point back, at every start, and the next longer
  // one.
  for (std::uint64_t pos = 0; pos < kMarkerSpacing; pos += 4) {
    const auto last_pointer = [pos](std::uint32_t n) {
      const std::uint32_t markers = markers_in(pos, fpdu_size(n));
      return to_marker(pos) + (markers - 1) * kMarkerSpacing - (leading_marker(pos) ? 4 : 0);
    };
    std::uint32_t n = 64000;
    while (n + 4 <= kMaxUlpdu && last_pointer(n + 4) <= 0xffff) n += 4;
    Bytes out(marked_size(pos, n));
    ASSERT_EQ(insert_markers(plain_fpdu(ByteView(ulpdu).first(n)), pos, true, out.data()),
              out.size());
    ASSERT_EQ(check_marked(out, pos, true), MarkedFpdu::Good);
    if (n + 4 > kMaxUlpdu) continue;
    EXPECT_EQ(insert_markers(plain_fpdu(ByteView(ulpdu).first(n + 4)), pos, true, nullptr), 0u);
  }
}

TEST(Markers, PartsOfAnFpduAreIncomplete) {
  const Bytes ulpdu(700, 3);
  for (const std::uint64_t pos : {0, 300}) {
    const Bytes m = with_markers(ulpdu, pos);
    for (std::size_t n = 0; n < m.size(); ++n) {
      const Bytes part(m.begin(), m.begin() + n);
      const std::size_t needed = leading_marker(pos) ? 6 : 2;
      ASSERT_EQ(marked_fpdu_length(part, pos).has_value(), n >= needed);
      ASSERT_EQ(check_marked(part, pos, true), MarkedFpdu::Incomplete);
      Bytes out(700);
      ASSERT_EQ(extract_marked(part, pos, out.data()), std::nullopt);
    }
    EXPECT_EQ(check_marked(m, pos + 1, true), MarkedFpdu::Incomplete);  // no FPDU can start there
    EXPECT_EQ(insert_markers(plain_fpdu(ulpdu), 2, true, nullptr), 0u);
  }
}

TEST(Markers, StripInPlace) {
  Rng rng(9);
  const Bytes ulpdu = random_bytes(rng, 1442);
  Bytes m = with_markers(ulpdu, 100);
  ASSERT_EQ(extract_marked(m, 100, m.data()), ulpdu.size());
  m.resize(ulpdu.size());
  EXPECT_EQ(to_hex(m), to_hex(ulpdu));
}

TEST(Markers, HostileFpdusNeverOverrun) {
  const auto vectors = test::read_golden("fpdu-markers.txt");
  Rng rng(2024);
  std::uint64_t good = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto& g = vectors[rng.below(vectors.size())];
    Bytes b = rng.chance(0.2) ? random_bytes(rng, rng.below(600)) : test::mutate(rng, g.bytes);
    if (rng.chance(0.5) && b.size() >= 4) {
      store_le32(b.data() + b.size() - 4, crc32c(ByteView(b).first(b.size() - 4)));
    }
    const std::uint64_t pos = rng.chance(0.7) ? std::stoull(g.remark) : rng.below(2000);
    const MarkedFpdu verdict = check_marked(b, pos, rng.chance(0.5));
    good += verdict == MarkedFpdu::Good;
    Bytes out(b.size());
    const auto n = extract_marked(b, pos, out.data());
    ASSERT_EQ(n.has_value(), verdict != MarkedFpdu::Incomplete);
    ASSERT_LE(n.value_or(0), b.size());
    if (b.size() <= 600) {
      Bytes marked(1024);
      insert_markers(b, pos, true, marked.data());
    }
  }
  EXPECT_GT(good, 1000u);
}

}  // namespace
}  // namespace urnic::mpa
