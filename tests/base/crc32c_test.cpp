#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/rng.h"

namespace urnic {
namespace {

ByteView view(std::string_view s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

// RFC 3720, B.4. The RFC prints the value in wire order, least significant byte first.
TEST(Crc32c, MatchesTheExamplesOfRfc3720B4) {
  const std::vector<std::uint8_t> zeros(32, 0), ones(32, 0xff);
  std::vector<std::uint8_t> up(32), down(32);
  for (std::size_t i = 0; i < 32; ++i) {
    up[i] = static_cast<std::uint8_t>(i);
    down[i] = static_cast<std::uint8_t>(31 - i);
  }
  const auto wire = [](ByteView b) {
    std::uint8_t w[4];
    store_le32(w, crc32c(b));
    return load_be32(w);
  };
  EXPECT_EQ(wire(zeros), 0xaa36918au);
  EXPECT_EQ(wire(ones), 0x43aba862u);
  EXPECT_EQ(wire(up), 0x4e79dd46u);
  EXPECT_EQ(wire(down), 0x5cdb3f11u);
}

TEST(Crc32c, MatchesTheUsualCheckValue) {
  EXPECT_EQ(crc32c(view("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, AllImplementationsAgreeOnEveryLengthAndAlignment) {
  Rng rng(11);
  std::vector<std::uint8_t> data(3000);
  for (auto& b : data) b = static_cast<std::uint8_t>(rng.next());
  for (std::size_t n = 0; n < 2900; n += n < 600 ? 1 : 37) {
    const auto state = static_cast<std::uint32_t>(rng.next());
    const ByteView bytes(data.data() + n % 71, n);
    const std::uint32_t want = crc32c_update_portable(state, bytes);
    ASSERT_EQ(crc32c_update_isal(state, bytes), want) << n;
    ASSERT_EQ(crc32c_update(state, bytes), want) << n;
  }
}

TEST(Crc32c, TheIncrementalFormEqualsOnePass) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    std::vector<std::uint8_t> data(rng.below(10000));
    for (auto& b : data) b = static_cast<std::uint8_t>(rng.next());
    std::uint32_t state = kCrc32cInit;
    for (std::size_t at = 0; at < data.size();) {
      const std::size_t n = std::min<std::size_t>(rng.between(0, 700), data.size() - at);
      state = crc32c_update(state, {data.data() + at, n});
      at += n;
    }
    EXPECT_EQ(crc32c_finish(state), crc32c(data));
  }
}

TEST(Crc32c, EverySingleBitErrorIsDetected) {
  std::vector<std::uint8_t> data(200, 0x5a);
  const std::uint32_t good = crc32c(data);
  for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
    data[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    EXPECT_NE(crc32c(data), good) << bit;
    data[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace urnic
