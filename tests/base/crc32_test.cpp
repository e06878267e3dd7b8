#include "base/crc32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/crc32_kernels.h"
#include "base/rng.h"

namespace urnic {
namespace {

ByteView view(std::string_view s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

TEST(Crc32, MatchesTheUsualCheckValue) {
  EXPECT_EQ(crc32(view("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32({}), 0u);
  EXPECT_EQ(crc32_finish(crc32_update_portable(kCrc32Init, view("123456789"))), 0xcbf43926u);
}

// All kernels that this CPU supports, including those behind crc32_update() and similar functions.
class Crc32Kernels : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Crc32KernelSet& kernel() const { return crc32_kernel(GetParam()); }
  // Calls f(bytes, state) for lengths with every remainder and some long ones, with changing
  // alignment.
  template <class F>
  void for_lengths(F&& f) {
    std::vector<std::uint8_t> data(5000);
    for (auto& b : data) b = static_cast<std::uint8_t>(rng_.next());
    for (std::size_t n = 0; n < 4500; n += n < 700 ? 1 : 211) {
      f(ByteView(data.data() + n % 67, n), static_cast<std::uint32_t>(rng_.next()));
    }
  }
  Rng rng_{5};
};

TEST_P(Crc32Kernels, AgreeWithTheReferenceForEveryLengthAndCut) {
  for_lengths([&](ByteView bytes, std::uint32_t state) {
    const std::uint32_t want = crc32_update_portable(state, bytes);
    ASSERT_EQ(kernel().update(state, bytes), want) << bytes.size();
    const std::size_t cut = bytes.empty() ? 0 : rng_.below(bytes.size());
    const std::uint32_t half = kernel().update(state, bytes.first(cut));
    ASSERT_EQ(kernel().update(half, bytes.subspan(cut)), want) << bytes.size() << " at " << cut;
  });
}

TEST_P(Crc32Kernels, TakeMaskedBitsAsOnes) {
  for_lengths([&](ByteView bytes, std::uint32_t state) {
    Crc32Mask mask;
    const std::size_t masked = rng_.below(Crc32Mask::kMost + 1);
    for (std::size_t i = 0; i < masked; ++i) mask.ones[i] = static_cast<std::uint8_t>(rng_.next());
    std::vector<std::uint8_t> with(bytes.begin(), bytes.end());
    for (std::size_t i = 0; i < std::min(masked, with.size()); ++i) with[i] |= mask.ones[i];
    ASSERT_EQ(kernel().masked(state, bytes, mask), crc32_update_portable(state, with))
        << bytes.size() << " of which " << masked << " may be masked";
  });
}

TEST_P(Crc32Kernels, CopyExactlyTheBytesTheyCount) {
  for_lengths([&](ByteView bytes, std::uint32_t state) {
    std::vector<std::uint8_t> to(bytes.size() + 128, 0xa5);
    ASSERT_EQ(kernel().copy(state, to.data() + 64, bytes), crc32_update_portable(state, bytes))
        << bytes.size();
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), to.begin() + 64)) << bytes.size();
    for (std::size_t i = 0; i < 64; ++i) {
      ASSERT_EQ(to[i], 0xa5) << bytes.size();
      ASSERT_EQ(to[to.size() - 1 - i], 0xa5) << bytes.size();
    }
  });
}

TEST(Crc32, TheWordVersionGivesTheSameCrc) {
  Rng rng(6);
  std::vector<std::uint8_t> data(72);
  for (auto& b : data) b = static_cast<std::uint8_t>(rng.next());
  for (std::size_t n = 0; n <= 64; n += 4) {
    const ByteView bytes(data.data() + n % 7, n);
    const auto state = static_cast<std::uint32_t>(rng.next());
    EXPECT_EQ(crc32_update_words(state, bytes), crc32_update_portable(state, bytes)) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(OfThisCpu, Crc32Kernels,
                         ::testing::Range(std::size_t{0}, crc32_kernel_count()));

TEST(Crc32, UsesTheFastestKernel) {
  const Crc32KernelSet& best = crc32_kernel(crc32_kernel_count() - 1);
  const ByteView bytes =
      view("what both see in the same way, for longer than one block of the kernel has room");
  Crc32Mask mask;
  mask.ones[9] = 0xff;
  std::vector<std::uint8_t> to(bytes.size());
  for (int time = 0; time < 2; ++time) {  // the first call selects it
    EXPECT_EQ(crc32_update(7, bytes), best.update(7, bytes));
    EXPECT_EQ(crc32_update_masked(7, bytes, mask), best.masked(7, bytes, mask));
    EXPECT_EQ(crc32_update_copy(7, to.data(), bytes), best.update(7, bytes));
  }
}

}  // namespace
}  // namespace urnic
