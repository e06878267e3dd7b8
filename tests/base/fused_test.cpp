#include "base/fused.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/inet_checksum.h"
#include "base/rng.h"

namespace urnic {
namespace {

std::vector<std::uint8_t> random_bytes(Rng& rng, std::size_t n) {
  std::vector<std::uint8_t> v(n);
  for (auto& b : v) b = static_cast<std::uint8_t>(rng.next());
  return v;
}

// Bytes that end just before an inaccessible page or start just after one, so that a kernel that
// accesses one byte too many crashes.
class Fenced {
 public:
  explicit Fenced(std::size_t size) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    inner_ = (size + page - 1) / page * page;
    total_ = inner_ + 2 * page;
    map_ = static_cast<std::uint8_t*>(
        mmap(nullptr, total_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(map_, MAP_FAILED);
    EXPECT_EQ(mprotect(map_ + page, inner_, PROT_READ | PROT_WRITE), 0);
    begin_ = map_ + page;
  }
  ~Fenced() { munmap(map_, total_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  std::uint8_t* first(std::size_t) const { return begin_; }
  std::uint8_t* last(std::size_t n) const { return begin_ + inner_ - n; }

 private:
  std::uint8_t* map_;
  std::uint8_t* begin_;
  std::size_t inner_;
  std::size_t total_;
};

class FusedKernels : public testing::TestWithParam<std::size_t> {
 protected:
  const FusedKernel kernel_ = fused_kernel(GetParam());
};

void expect_sums(const FusedKernel& k, const std::uint8_t* p, std::size_t n, std::uint32_t crc) {
  const ByteView bytes(p, n);
  const FusedSums got = k.crc_sum(bytes, crc);
  ASSERT_EQ(got.crc, crc32c_update_portable(crc, bytes)) << k.name << " length " << n;
  ASSERT_EQ(inet_fold(got.sum), inet_fold(inet_sum_portable(bytes))) << k.name << " length " << n;
}

TEST_P(FusedKernels, AgreeWithTheReferencesAtEveryShortLength) {
  Rng rng(1);
  const auto data = random_bytes(rng, 1700);
  for (std::size_t n = 0; n <= 1600; ++n) {
    const std::size_t at = n % 67;
    expect_sums(kernel_, data.data() + at, n, kCrc32cInit);
    expect_sums(kernel_, data.data() + at, n, static_cast<std::uint32_t>(rng.next()));
    if (HasFatalFailure()) return;
  }
}

TEST_P(FusedKernels, AgreeWithTheReferencesAtRandomLengths) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const auto data = random_bytes(rng, rng.below(40000) + 64);
    const std::size_t at = rng.below(64);
    expect_sums(kernel_, data.data() + at, data.size() - 64, static_cast<std::uint32_t>(seed));
    if (HasFatalFailure()) return;
  }
}

TEST_P(FusedKernels, LargestSumsDoNotOverflow) {
  // All ones is the worst case for every lane; longer than any internal block.
  const std::vector<std::uint8_t> ones((3u << 20) + 5, 0xff);
  expect_sums(kernel_, ones.data(), ones.size(), 0);
  std::vector<std::uint8_t> to(ones.size());
  const FusedSums copied = kernel_.copy_crc_sum(to.data(), ones, 0);
  EXPECT_EQ(copied.crc, crc32c_update_portable(0, ones));
  EXPECT_EQ(inet_fold(copied.sum), inet_fold(inet_sum_portable(ones)));
  EXPECT_EQ(to, ones);
}

TEST_P(FusedKernels, ZeroBytesKeepTheDistinctionBetweenTheTwoZeros) {
  const std::vector<std::uint8_t> zeros(1500, 0);
  EXPECT_EQ(kernel_.crc_sum(zeros, kCrc32cInit).sum, 0u);
  std::vector<std::uint8_t> v(1500, 0);
  v[700] = v[701] = 0xff;
  EXPECT_EQ(inet_fold(kernel_.crc_sum(v, kCrc32cInit).sum), 0xffff);
}

TEST_P(FusedKernels, TheRunningStateContinuesAcrossAnyCut) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const auto data = random_bytes(rng, 2 + rng.below(5000));
    const std::size_t cut = rng.below(data.size() / 2) * 2;  // even, so that the sums can be added
    const ByteView all(data);
    const FusedSums a = kernel_.crc_sum(all.first(cut), kCrc32cInit);
    const FusedSums b = kernel_.crc_sum(all.subspan(cut), a.crc);
    ASSERT_EQ(crc32c_finish(b.crc), crc32c(all));
    ASSERT_EQ(inet_fold(std::uint64_t{a.sum} + b.sum), inet_fold(inet_sum_portable(all)));
  }
}

TEST_P(FusedKernels, CopyWritesExactlyTheBytesAndSumsThem) {
  Rng rng(7);
  const auto data = random_bytes(rng, 9200);
  std::vector<std::size_t> lengths;
  for (std::size_t n = 0; n <= 800; ++n) lengths.push_back(n);
  for (std::size_t n : {1024, 1447, 1448, 1460, 4096, 8948, 8960, 8961, 9000}) lengths.push_back(n);
  for (std::size_t n : lengths) {
    const std::size_t from = rng.below(64), at = 32 + rng.below(64);
    std::vector<std::uint8_t> dst(n + 192, 0xa5);
    const ByteView source(data.data() + from, n);
    const FusedSums got = kernel_.copy_crc_sum(dst.data() + at, source, kCrc32cInit);
    ASSERT_EQ(got.crc, crc32c_update_portable(kCrc32cInit, source)) << n;
    ASSERT_EQ(inet_fold(got.sum), inet_fold(inet_sum_portable(source))) << n;
    ASSERT_TRUE(std::equal(source.begin(), source.end(), dst.data() + at)) << n;
    ASSERT_TRUE(std::all_of(dst.data(), dst.data() + at, [](auto b) { return b == 0xa5; })) << n;
    ASSERT_TRUE(std::all_of(dst.data() + at + n, dst.data() + dst.size(), [](auto b) {
      return b == 0xa5;
    })) << n;
  }
}

TEST_P(FusedKernels, TouchNoByteOutsideTheirInput) {
  const Fenced src(9216), dst(9216);
  Rng rng(3);
  for (std::size_t i = 0; i < 9216; ++i) src.first(0)[i] = static_cast<std::uint8_t>(rng.next());
  for (std::size_t n = 0; n <= 9216; n += n < 700 ? 1 : 53) {
    expect_sums(kernel_, src.first(n), n, 1);
    expect_sums(kernel_, src.last(n), n, 2);
    const FusedSums a = kernel_.copy_crc_sum(dst.last(n), {src.first(n), n}, 3);
    const FusedSums b = kernel_.copy_crc_sum(dst.first(n), {src.last(n), n}, 3);
    ASSERT_EQ(a.crc, crc32c_update_portable(3, {src.first(n), n}));
    ASSERT_EQ(b.crc, crc32c_update_portable(3, {src.last(n), n}));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FusedKernels, testing::Range<std::size_t>(0, fused_kernel_count()),
                         [](const auto& kernel) {
                           std::string name(fused_kernel(kernel.param).name);
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

TEST(Fused, TheLastAvailableKernelIsUsed) {
  ASSERT_GE(fused_kernel_count(), 1u);
  EXPECT_EQ(fused_kernel(0).name, "portable");
  EXPECT_EQ(fused_kernel_name(), fused_kernel(fused_kernel_count() - 1).name);
}

TEST(Fused, EntryPointsAgreeWithTheReferences) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const auto data = random_bytes(rng, rng.below(3000));
    std::vector<std::uint8_t> dst(data.size());
    const auto crc = crc32c_update_portable(kCrc32cInit, data);
    const auto sum = inet_fold(inet_sum_portable(data));
    EXPECT_EQ(fused_crc_sum(data, kCrc32cInit).crc, crc);
    EXPECT_EQ(inet_fold(fused_crc_sum(data, kCrc32cInit).sum), sum);
    EXPECT_EQ(fused_copy_crc_sum(dst.data(), data, kCrc32cInit).crc, crc);
    EXPECT_EQ(dst, data);
    std::fill(dst.begin(), dst.end(), 0);
    EXPECT_EQ(inet_fold(fused_copy_sum(dst.data(), data)), sum);
    EXPECT_EQ(dst, data);
  }
}

TEST(Fused, AnEmptyViewLeavesTheCrcAlone) {
  EXPECT_EQ(fused_crc_sum({}, 0x1234).crc, 0x1234u);
  EXPECT_EQ(fused_crc_sum({}, 0x1234).sum, 0u);
  EXPECT_EQ(fused_copy_crc_sum(nullptr, {}, 0x1234).crc, 0x1234u);
  EXPECT_EQ(fused_copy_sum(nullptr, {}), 0u);
}

}  // namespace
}  // namespace urnic
