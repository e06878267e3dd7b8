// The CRC-32 kernels for AVX-512 with VPCLMULQDQ. As in fused_vpclmul.cpp, the message is processed
// as whole 64-byte blocks aligned to its end. The first block is padded with zeros at its front,
// which do not change a CRC that starts at zero. The running CRC is added to the first four bytes
// of the message, and the mask to as many bytes as it has. The only serial step is the reduction of
// the last 128 bits: unlike for CRC32C, there is no instruction for it.
#include <array>
#include <cstring>

#include "base/crc32_kernels.h"
#include "base/crc_math.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace urnic {
namespace {

#define URNIC_TARGET                                                                \
  __attribute__((                                                                   \
      target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,vpclmulqdq,avx2,bmi2," \
             "sse4.2,pclmul")))
#define URNIC_CRC static inline __attribute__((always_inline)) URNIC_TARGET

static_assert(Crc32Math::kPoly33 == 0x1db710641 && Crc32Math::quotient() == 0x1f7011641);

inline constexpr std::size_t kAtOnce = 4;  // blocks in flight
constexpr auto kToEnd = Crc32Math::blocks_to_end<2 * kAtOnce>();

URNIC_CRC __m512i fold(__m512i x, __m512i k, __m512i next) {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
                                   _mm512_clmulepi64_epi128(x, k, 0x11), next, 0x96);
}
URNIC_CRC __m512i to_end(__m512i x, std::size_t distance, __m512i acc) {
  return fold(x, _mm512_load_si512(&kToEnd[distance]), acc);
}

URNIC_CRC __m128i pair(std::uint64_t low, std::uint64_t high) {
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}

// The CRC of the 128-bit number that is congruent to the whole message: multiplied by x^32 and
// reduced to 96 bits, then to 64, then by Barrett's reduction.
URNIC_CRC std::uint32_t reduce(__m512i all) {
  const __m256i y =
      _mm256_xor_si256(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  const __m128i r = _mm_xor_si128(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
  constexpr std::uint64_t kBy96 = std::uint64_t{Crc32Math::x_to(95)} << 32;
  constexpr std::uint64_t kBy64 = std::uint64_t{Crc32Math::x_to(63)} << 32;
  const __m128i fold_by = pair(kBy96, kBy64);
  const __m128i barrett = pair(Crc32Math::kPoly33, Crc32Math::quotient());
  const __m128i low_word = _mm_cvtsi32_si128(-1);
  // The upper half represents x^0 to x^63; 32 more are half of a quadword.
  const __m128i upper = _mm_slli_si128(_mm_srli_si128(r, 8), 4);
  const __m128i t = _mm_xor_si128(_mm_clmulepi64_si128(r, fold_by, 0x00), upper);
  const __m128i u = _mm_srli_si128(_mm_xor_si128(_mm_clmulepi64_si128(t, fold_by, 0x10), t), 8);
  const __m128i q =
      _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(u, low_word), barrett, 0x10), low_word);
  const __m128i left = _mm_xor_si128(_mm_clmulepi64_si128(q, barrett, 0x00), u);
  return static_cast<std::uint32_t>(_mm_extract_epi32(left, 1));
}

struct Cursor {
  const std::uint8_t* p;
  std::uint8_t* dst;
};

// The value is opaque to the compiler, so that memory is read only once (E-20).
template <bool kCopy>
URNIC_CRC __m512i next_block(Cursor& at) {
  __m512i v = _mm512_loadu_si512(at.p);
  if constexpr (kCopy) {
    asm volatile("" : "+v"(v));
    _mm512_storeu_si512(at.dst, v);
    at.dst += 64;
  }
  at.p += 64;
  return v;
}

// The first block: `first` bytes after zeros, with the running CRC added to the first four of them.
// If the block is shorter, the rest of the CRC and of the mask goes into the second block.
template <bool kCopy>
URNIC_CRC __m512i first_block(Cursor& at, std::size_t first, std::uint32_t state,
                              const Crc32Mask* mask) {
  const __mmask64 front = ~std::uint64_t{0} >> (64 - first);
  const __mmask64 back = ~std::uint64_t{0} << (64 - first);
  __m512i v = _mm512_maskz_loadu_epi8(front, at.p);
  if constexpr (kCopy) {
    asm volatile("" : "+v"(v));
    _mm512_mask_storeu_epi8(at.dst, front, v);
    at.dst += first;
  }
  at.p += first;
  if (mask != nullptr) v = _mm512_or_si512(v, _mm512_load_si512(mask->ones.data()));
  v = _mm512_xor_si512(v, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
  return _mm512_maskz_expand_epi8(back, v);
}
template <bool kCopy>
URNIC_CRC __m512i second_block(Cursor& at, std::size_t first, std::uint32_t state,
                               const Crc32Mask* mask) {
  __m512i v = next_block<kCopy>(at);
  if (mask != nullptr) v = _mm512_or_si512(v, _mm512_loadu_si512(mask->ones.data() + first));
  const std::uint32_t left = first < 4 ? state >> (8 * first) : 0;
  return _mm512_xor_si512(v, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(left))));
}

// Finishes with blocks already loaded or folded and `rest` more blocks to read.
template <bool kCopy, std::size_t kBlocks>
URNIC_CRC std::uint32_t finish(Cursor& at, const __m512i (&x)[kBlocks], std::size_t rest) {
  __m512i acc[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kBlocks; ++i) {
    acc[i % 2] = to_end(x[i], kBlocks - 1 - i + rest, acc[i % 2]);
  }
  __m512i last = x[kBlocks - 1];
  for (; rest != 0; --rest) {
    last = next_block<kCopy>(at);
    acc[0] = to_end(last, rest - 1, acc[0]);
  }
  acc[0] = _mm512_mask_xor_epi64(acc[0], 0xc0, acc[0], last);
  return reduce(_mm512_xor_si512(acc[0], acc[1]));
}

// For at least four bytes.
template <bool kCopy>
URNIC_CRC std::uint32_t run(std::uint32_t state, std::uint8_t* dst, ByteView bytes,
                            const Crc32Mask* mask) {
  Cursor at = {bytes.data(), dst};
  const std::size_t n = bytes.size();
  const std::size_t first = (n - 1) % 64 + 1;
  std::size_t blocks = (n - first) / 64;  // after the first
  const __m512i begin = first_block<kCopy>(at, first, state, mask);
  if (blocks == 0) {
    const __m512i one[1] = {begin};
    return finish<kCopy>(at, one, 0);
  }
  const __m512i second = second_block<kCopy>(at, first, state, mask);
  --blocks;
  if (blocks < kAtOnce - 2) {
    const __m512i two[2] = {begin, second};
    return finish<kCopy>(at, two, blocks);
  }
  __m512i x[kAtOnce] = {begin, second, next_block<kCopy>(at), next_block<kCopy>(at)};
  constexpr auto kBy2048 = Crc32Math::fold_by(512 * kAtOnce);
  const __m512i k = _mm512_broadcast_i32x4(pair(kBy2048.lo, kBy2048.hi));
  for (blocks -= kAtOnce - 2; blocks >= kAtOnce; blocks -= kAtOnce) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kAtOnce; ++i) x[i] = fold(x[i], k, next_block<kCopy>(at));
  }
  return finish<kCopy>(at, x, blocks);
}

// For up to three bytes.
std::uint32_t update_tiny(std::uint32_t state, ByteView bytes) {
  return crc32_update_portable(state, bytes);
}

URNIC_TARGET std::uint32_t update(std::uint32_t state, ByteView bytes) {
  if (bytes.size() < 4) return update_tiny(state, bytes);
  return run<false>(state, nullptr, bytes, nullptr);
}
URNIC_TARGET std::uint32_t masked(std::uint32_t state, ByteView bytes, const Crc32Mask& mask) {
  if (bytes.size() < 4) return kCrc32Isal.masked(state, bytes, mask);
  return run<false>(state, nullptr, bytes, &mask);
}
URNIC_TARGET std::uint32_t copy(std::uint32_t state, std::uint8_t* dst, ByteView bytes) {
  if (bytes.size() < 4) return kCrc32Isal.copy(state, dst, bytes);
  return run<true>(state, dst, bytes, nullptr);
}

}  // namespace

const Crc32KernelSet kCrc32Vpclmul = {"avx512+vpclmulqdq", update, masked, copy};

}  // namespace urnic
#endif
