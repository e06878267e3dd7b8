// Arithmetic modulo the polynomial of a CRC, at compile time. The constants of all CRC kernels are
// computed here instead of being copied from a table.
//
// Polynomials are bit-reflected like those of the crc32 instruction: the most significant bit of a
// 32-bit value is the coefficient of x^0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace urnic {

template <std::uint32_t kPolynomial>
struct CrcMath {
  static constexpr std::uint32_t kPoly = kPolynomial;
  static constexpr std::uint32_t kOne = 0x80000000u;  // x^0

  static constexpr std::uint32_t times_x(std::uint32_t v) {
    return (v >> 1) ^ ((v & 1) != 0 ? kPoly : 0);
  }

  // a * b mod P.
  static constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t r = 0;
    for (int i = 31; i >= 0; --i) {  // b's coefficients from x^0 upward
      if (((b >> i) & 1) != 0) r ^= a;
      a = times_x(a);
    }
    return r;
  }

  // x^n mod P.
  static constexpr std::uint32_t x_to(std::uint64_t n) {
    std::uint32_t r = kOne;
    std::uint32_t square = kOne >> 1;  // x^1
    for (; n != 0; n >>= 1) {
      if ((n & 1) != 0) r = multiply(r, square);
      square = multiply(square, square);
    }
    return r;
  }

  // Moves a 32-bit CRC state forward over 64*j zero bits with one carry-less multiplication and one
  // crc32 instruction. The reflected 32x32 product has one x too many, and crc32q(0, v) is v *
  // x^32, hence the exponent 64j - 33. Entry 0 is not used.
  template <std::size_t N>
  static constexpr std::array<std::uint32_t, N> word_shift_table() {
    std::array<std::uint32_t, N> t{};
    const std::uint32_t step = x_to(64);
    std::uint32_t v = x_to(31);
    for (std::size_t j = 1; j < N; ++j) {
      t[j] = v;
      v = multiply(v, step);
    }
    return t;
  }

  // Multipliers that move a 128-bit lane forward over `bits` bits, for the low quadword (the
  // earlier bytes, 64 positions higher) and the high one. A reflected 64x64 product also has one x
  // too many, and a 32-bit polynomial is in the upper half of its quadword.
  struct Fold {
    std::uint64_t lo;
    std::uint64_t hi;
  };
  static constexpr Fold fold_by(std::uint64_t bits) {
    return {static_cast<std::uint64_t>(x_to(bits + 63)) << 32,
            static_cast<std::uint64_t>(x_to(bits - 1)) << 32};
  }

  // Multipliers for the four lanes of a 64-byte block that is `block` blocks before the last one:
  // each lane moves to the place of the last lane, which does not move.
  struct alignas(64) BlockFold {
    std::uint64_t k[8];
  };
  template <std::size_t N>
  static constexpr std::array<BlockFold, N> blocks_to_end() {
    std::array<BlockFold, N> t{};
    for (std::size_t block = 0; block < N; ++block) {
      for (std::size_t lane = 0; lane < 4; ++lane) {
        const std::uint64_t bits = 512 * block + 128 * (3 - lane);
        if (bits == 0) continue;
        const Fold f = fold_by(bits);
        t[block].k[2 * lane] = f.lo;
        t[block].k[2 * lane + 1] = f.hi;
      }
    }
    return t;
  }

  // Constants for Barrett's reduction of 64 bits to 32: the polynomial with its x^32 in bit 0, and
  // the quotient of x^64 by it, as reflected 33-bit numbers.
  static constexpr std::uint64_t kPoly33 = std::uint64_t{kPoly} << 1 | 1;
  static constexpr std::uint64_t quotient() {
    std::uint64_t q = 0;
    std::uint32_t rest = kPoly;                  // remainder of x^32, whose quotient is 1
    for (int power = 31; power >= 0; --power) {  // coefficients of the quotient, highest first
      if ((rest & 1) != 0) q |= std::uint64_t{1} << (32 - power);
      rest = times_x(rest);
    }
    return q | 1;
  }
};

using Crc32cMath = CrcMath<0x82f63b78u>;  // 0x1edc6f41 reflected
using Crc32Math = CrcMath<0xedb88320u>;   // 0x04c11db7 reflected

}  // namespace urnic
