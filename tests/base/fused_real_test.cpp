// Sums and copies of memory that another thread is writing to.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "base/fused.h"
#include "base/inet_checksum.h"

namespace urnic {
namespace {

class FusedRace : public testing::TestWithParam<std::size_t> {
 protected:
  const FusedKernel kernel_ = fused_kernel(GetParam());
};

#if defined(__SANITIZE_THREAD__)
#define URNIC_DATA_RACES_REPORTED 1
#endif

// E-20: whatever happens to the source, the sums are of the written bytes.
TEST_P(FusedRace, SumsMatchTheWrittenBytesIfTheSourceChangesDuringTheCopy) {
#ifdef URNIC_DATA_RACES_REPORTED
  GTEST_SKIP() << "the race is the point of this test";
#endif
  std::vector<std::uint8_t> source(8960), dst(8960);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    volatile std::uint8_t* p = source.data();
    for (std::uint8_t v = 0; !stop.load(std::memory_order_relaxed); ++v) {
      for (std::size_t i = 0; i < source.size(); i += 61)
        p[i] = static_cast<std::uint8_t>(p[i] + v);
    }
  });
  std::size_t changed = 0;
  // At least this long, and until the writer has run: the source has changed during a copy.
  using Clock = std::chrono::steady_clock;
  const auto least = Clock::now() + std::chrono::milliseconds(200);
  const auto most = Clock::now() + std::chrono::seconds(20);
  bool good = true;
  for (std::size_t i = 0; good && Clock::now() < (changed == 0 ? most : least); ++i) {
    const std::size_t n = i % 3 == 0 ? 8960 : i % 3 == 1 ? 1460 : 60;
    const FusedSums got = kernel_.copy_crc_sum(dst.data(), {source.data(), n}, kCrc32cInit);
    const ByteView written(dst.data(), n);
    good = got.crc == crc32c_update_portable(kCrc32cInit, written) &&
           inet_fold(got.sum) == inet_fold(inet_sum_portable(written));
    changed += std::equal(written.begin(), written.end(), source.begin()) ? 0 : 1;
  }
  stop = true;
  writer.join();
  EXPECT_TRUE(good);
  EXPECT_GT(changed, 0u) << "the source never changed, so nothing was shown";
}

INSTANTIATE_TEST_SUITE_P(All, FusedRace, testing::Range<std::size_t>(0, fused_kernel_count()),
                         [](const auto& kernel) {
                           std::string name(fused_kernel(kernel.param).name);
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace urnic
