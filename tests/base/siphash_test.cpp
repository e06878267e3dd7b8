#include "base/siphash.h"

#include <gtest/gtest.h>

#include <array>

namespace urnic {
namespace {

constexpr SipKey kKey = {0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};

// From the authors' reference implementation: the input is 00 01 02 ... of each length.
TEST(SipHash, MatchesTheReferenceVectorsOfSipHash24) {
  constexpr std::uint64_t kExpected[] = {
      0x726fdb47dd0e0e31ULL, 0x74f839c593dc67fdULL, 0x0d6c8009d9a94f5aULL, 0x85676696d7fb7e2dULL,
      0xcf2794e0277187b7ULL, 0x18765564cd99a68dULL, 0xcbc9466e58fee3ceULL, 0xab0200f58b01d137ULL,
      0x93f5f5799a932462ULL, 0x9e0082df0ba9e4b0ULL, 0x7a5dbbc594ddb9f3ULL, 0xf4b32f46226bada7ULL,
      0x751e8fbc860ee5fbULL, 0x14ea5627c0843d90ULL, 0xf723ca908e7af2eeULL, 0xa129ca6149be45e5ULL};
  std::array<std::uint8_t, 16> input{};
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::uint8_t>(i);
  for (std::size_t n = 0; n < std::size(kExpected); ++n) {
    EXPECT_EQ(siphash24(kKey, {input.data(), n}), kExpected[n]) << n;
  }
}

TEST(SipHash, WordsHashAsTheirBytes) {
  std::array<std::uint8_t, 24> input{};
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::uint8_t>(7 * i);
  const std::uint64_t a = load_le64(input.data()), b = load_le64(input.data() + 8),
                      c = load_le64(input.data() + 16);
  EXPECT_EQ(siphash24(kKey, {a, b, c}), siphash24(kKey, ByteView(input)));
  EXPECT_EQ(siphash13(kKey, {a, b, c}), siphash13(kKey, ByteView(input)));
}

TEST(SipHash, DependsOnEveryBitOfTheKey) {
  const std::array<std::uint8_t, 5> input = {1, 2, 3, 4, 5};
  const std::uint64_t base24 = siphash24(kKey, ByteView(input));
  const std::uint64_t base13 = siphash13(kKey, ByteView(input));
  for (int bit = 0; bit < 128; ++bit) {
    SipKey key = kKey;
    (bit < 64 ? key.k0 : key.k1) ^= std::uint64_t{1} << bit % 64;
    EXPECT_NE(siphash24(key, ByteView(input)), base24) << bit;
    EXPECT_NE(siphash13(key, ByteView(input)), base13) << bit;
  }
}

}  // namespace
}  // namespace urnic
