#include "mpa/builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/inet_checksum.h"
#include "base/rng.h"
#include "mpa/fpdu.h"
#include "support/golden.h"
#include "support/random_bytes.h"

namespace urnic::mpa {
namespace {

using test::Bytes;
using test::random_bytes;
using test::to_hex;

// Builds the FPDU step by step: each field, then sums over the finished bytes.
Bytes reference(ByteView ulpdu, bool crc) {
  Bytes f(fpdu_size(static_cast<std::uint32_t>(ulpdu.size())));
  store_be16(f.data(), static_cast<std::uint16_t>(ulpdu.size()));
  std::copy(ulpdu.begin(), ulpdu.end(), f.begin() + kLengthField);
  const ByteView covered = ByteView(f).first(f.size() - kCrcField);
  store_le32(f.data() + covered.size(), crc ? ~crc32c_update_portable(kCrc32cInit, covered) : 0);
  return f;
}

// Cuts `ulpdu` after `header` bytes and then at random places, with some empty pieces.
std::vector<ByteView> pieces_of(Rng& rng, ByteView ulpdu, std::size_t header) {
  std::vector<ByteView> pieces;
  for (ByteView rest = ulpdu.subspan(header); !rest.empty();) {
    const std::size_t n =
        rng.chance(0.1) ? 0 : rng.below(std::min<std::size_t>(rest.size(), 700)) + 1;
    pieces.push_back(rest.first(n));
    rest = rest.subspan(n);
  }
  return pieces;
}

void expect_built(ByteView ulpdu, std::size_t header, const std::vector<ByteView>& pieces,
                  bool crc) {
  const Bytes want = reference(ulpdu, crc);
  Bytes got(want.size(), 0xee);
  const Built b = build_fpdu(got.data(), ulpdu.first(header), pieces, crc);
  ASSERT_EQ(b.len, want.size());
  ASSERT_EQ(to_hex(got), to_hex(want));
  ASSERT_EQ(inet_fold(b.sum), inet_fold(inet_sum_portable(want)));
}

TEST(Builder, WritesTheGoldenFpdusByteForByte_RFC5044_4_1) {
  for (const auto& g : test::read_golden("fpdu.txt")) {
    SCOPED_TRACE(g.name);
    const ByteView ulpdu = ulpdu_of(g.bytes);
    for (const std::size_t header : {std::size_t{0}, std::size_t{14}, ulpdu.size()}) {
      const ByteView payload = ulpdu.subspan(header);
      Bytes got(g.bytes.size());
      const Built b = build_fpdu(got.data(), ulpdu.first(header), {&payload, 1}, true);
      EXPECT_EQ(b.len, g.bytes.size());
      EXPECT_EQ(to_hex(got), to_hex(g.bytes));
      EXPECT_EQ(inet_fold(b.sum), inet_fold(inet_sum_portable(g.bytes)));
    }
  }
}

// proves: E-20
TEST(Builder, AnyCutOfHeaderAndPayloadGivesTheSameFpduAndSum) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Bytes ulpdu = random_bytes(rng, rng.below(seed % 8 == 0 ? 9001 : 300));
    const std::size_t header = rng.below(std::min<std::size_t>(ulpdu.size(), 90) + 1);
    expect_built(ulpdu, header, pieces_of(rng, ulpdu, header), rng.chance(0.7));
    if (HasFatalFailure()) return;
  }
}

TEST(Builder, EveryPadLengthAndOddPieceLength) {
  Rng rng(7);
  const Bytes all = random_bytes(rng, 128);
  for (std::size_t n = 14; n <= 80; ++n) {
    for (std::size_t cut = 14; cut <= n; ++cut) {
      const ByteView ulpdu(all.data(), n);
      expect_built(ulpdu, 14, {ulpdu.subspan(14, cut - 14), ulpdu.subspan(cut)}, true);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Builder, CrcOffLeavesTheFieldZero_RFC5044_4_4) {
  Rng rng(3);
  const Bytes ulpdu = random_bytes(rng, 99);
  Bytes got(fpdu_size(99));
  const ByteView piece = ByteView(ulpdu).subspan(18);
  build_fpdu(got.data(), ByteView(ulpdu).first(18), {&piece, 1}, false);
  EXPECT_EQ(crc_of(got), 0u);
  EXPECT_EQ(to_hex(ulpdu_of(got)), to_hex(ulpdu));
}

TEST(Builder, LongestUlpduAndOneByteMore) {
  Rng rng(11);
  const Bytes data = random_bytes(rng, kMaxUlpdu + 1);
  const ByteView longest = ByteView(data).first(kMaxUlpdu);
  expect_built(longest, 14, {longest.subspan(14)}, true);
  std::uint8_t dst[1] = {0x5a};
  const ByteView piece = ByteView(data).subspan(14);
  const Built b = build_fpdu(dst, ByteView(data).first(14), {&piece, 1}, true);
  EXPECT_EQ(b.len, 0u);
  EXPECT_EQ(dst[0], 0x5a);
}

TEST(Builder, EmptyUlpdu) {
  expect_built({}, 0, {}, true);
}

// One's-complement zero has two forms. The sum of an all-zero body must not change a checksum.
TEST(Builder, ZeroPayloadKeepsAValidSum) {
  const Bytes ulpdu(1442, 0);
  expect_built(ulpdu, 14, {ByteView(ulpdu).subspan(14)}, false);
}

}  // namespace
}  // namespace urnic::mpa
