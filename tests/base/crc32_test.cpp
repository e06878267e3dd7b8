#include "base/crc32.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

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

TEST(Crc32, AgreesWithTheReferenceForEveryLengthAndCut) {
  Rng rng(5);
  std::vector<std::uint8_t> data(5000);
  for (auto& b : data) b = static_cast<std::uint8_t>(rng.next());
  for (std::size_t n = 0; n < 4500; n += n < 300 ? 1 : 211) {
    const ByteView bytes(data.data() + n % 67, n);
    const auto state = static_cast<std::uint32_t>(rng.next());
    const std::uint32_t want = crc32_update_portable(state, bytes);
    ASSERT_EQ(crc32_update(state, bytes), want) << n;
    const std::size_t cut = n == 0 ? 0 : rng.below(n);
    ASSERT_EQ(crc32_update(crc32_update(state, bytes.first(cut)), bytes.subspan(cut)), want) << n;
  }
}

}  // namespace
}  // namespace urnic
