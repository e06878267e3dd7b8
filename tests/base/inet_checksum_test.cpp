#include "base/inet_checksum.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/cpu.h"
#include "base/fused_kernels.h"
#include "base/rng.h"

namespace urnic {
namespace {

// RFC 1071, section 1, literally.
std::uint16_t by_definition(ByteView b) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < b.size(); i += 2) {
    sum += static_cast<std::uint32_t>(b[i] << 8) | (i + 1 < b.size() ? b[i + 1] : 0);
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(sum);
}

TEST(InetChecksum, MatchesTheExampleOfRfc1071Section3) {
  const std::uint8_t bytes[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(inet_fold(inet_sum(bytes)), 0xddf2);
  EXPECT_EQ(inet_checksum(inet_sum(bytes)), static_cast<std::uint16_t>(~0xddf2));
}

TEST(InetChecksum, AnIpHeaderWithItsChecksumSumsToAllOnes) {
  const std::uint8_t header[] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
  EXPECT_EQ(inet_fold(inet_sum(header)), 0xffff);
}

TEST(InetChecksum, AnOddLastByteIsPaddedOnTheRight) {
  const std::uint8_t bytes[] = {0x12, 0x34, 0x56};
  EXPECT_EQ(inet_fold(inet_sum(bytes)), 0x1234 + 0x5600);
}

TEST(InetChecksum, EveryKernelAgreesWithTheDefinition) {
  std::vector<const FusedKernelSet*> sets = {&kFusedPortable};
#if defined(__x86_64__)
  if (cpu_features().sse42) sets.push_back(&kFusedSse42);
  if (cpu_features().avx2) sets.push_back(&kFusedAvx2);
  if (cpu_features().avx512) sets.push_back(&kFusedAvx512);
  if (cpu_features().vpclmulqdq) sets.push_back(&kFusedVpclmul);
#elif defined(__aarch64__)
  if (cpu_features().armv8_crc) sets.push_back(&kFusedArm64);
#endif
  Rng rng(5);
  std::vector<std::uint8_t> data(9100);
  for (auto& b : data) b = static_cast<std::uint8_t>(rng.next());
  for (std::size_t n = 0; n <= 9000; n += n < 500 ? 1 : 61) {
    const ByteView bytes(data.data() + n % 65, n);
    const std::uint16_t want = by_definition(bytes);
    ASSERT_EQ(inet_fold(inet_sum(bytes)), want) << n;
    ASSERT_EQ(inet_fold(inet_sum_portable(bytes)), want) << n;
    for (const auto* set : sets) {
      ASSERT_EQ(inet_fold(set->sum(bytes)), want) << set->name << " " << n;
      std::vector<std::uint8_t> dst(n + 1, 0x77);
      ASSERT_EQ(inet_fold(set->copy_sum(dst.data(), bytes)), want) << set->name << " " << n;
      ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), dst.begin())) << set->name << " " << n;
      ASSERT_EQ(dst[n], 0x77) << set->name << " " << n;
    }
  }
}

TEST(InetChecksum, SumsOfEvenPiecesAdd) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    std::vector<std::uint8_t> data(rng.below(4000) + 1);
    for (auto& b : data) b = static_cast<std::uint8_t>(rng.next());
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < data.size();) {
      const std::size_t n = std::min<std::size_t>(2 * rng.below(300), data.size() - at);
      sum += inet_sum({data.data() + at, n});
      at += n;
    }
    ASSERT_EQ(inet_fold(sum), by_definition(data));
  }
}

TEST(InetChecksum, FoldAcceptsAnySum) {
  EXPECT_EQ(inet_fold(0), 0);
  EXPECT_EQ(inet_fold(0xffff), 0xffff);
  EXPECT_EQ(inet_fold(0x10000), 1);
  EXPECT_EQ(inet_fold(~std::uint64_t{0}), 0xffff);
  Rng rng(9);
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t v = rng.next();
    const std::uint64_t mod = v % 0xffff;
    ASSERT_EQ(inet_fold(v), mod == 0 ? 0xffff : mod) << v;
  }
}

}  // namespace
}  // namespace urnic
