// The kernels for AVX-512 with VPCLMULQDQ (Ice Lake, Zen 4 and later): the same 512-bit register is
// folded for the CRC and added for the checksum.
//
// The message is taken as whole 64-byte blocks that end where it ends; the first block is filled
// with zeros in front, which changes neither a CRC that starts at zero nor a sum. The running CRC
// goes in over the first four bytes of the message. No byte is left for scalar code, and the only
// serial part is the reduction of the last 128 bits.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/crc32c_math.h"
#include "base/fused_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace urnic {
namespace {

#define URNIC_TARGET                                                                \
  __attribute__((                                                                   \
      target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,vpclmulqdq,avx2,bmi2," \
             "sse4.2,pclmul")))
#define URNIC_FUSED static inline __attribute__((always_inline)) URNIC_TARGET

// Multipliers of the four lanes of a block that stands `block` blocks before the last one: each
// lane moves to the place of the last lane. The last lane of the last block stays where it is.
struct alignas(64) BlockFold {
  std::uint64_t k[8];
};
inline constexpr std::size_t kMaxDistance = 6;
constexpr auto kToEnd = [] {
  std::array<BlockFold, kMaxDistance + 1> t{};
  for (std::size_t block = 0; block <= kMaxDistance; ++block) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      const std::uint64_t bits = 512 * block + 128 * (3 - lane);
      if (bits == 0) continue;
      const auto f = crc32c_math::fold_by(bits);
      t[block].k[2 * lane] = f.lo;
      t[block].k[2 * lane + 1] = f.hi;
    }
  }
  return t;
}();

// See fused_avx512.cpp; 65536 additions before the 32-bit lanes could overflow.
struct Sum {
  __m512i all;
  __m512i high;
};
URNIC_FUSED void add(Sum& s, __m512i v) {
  s.all = _mm512_add_epi32(s.all, v);
  s.high = _mm512_add_epi32(s.high, _mm512_srli_epi32(v, 16));
}
URNIC_FUSED std::uint64_t total(const Sum& s) {
  const __m512i low = _mm512_sub_epi32(s.all, _mm512_slli_epi32(s.high, 16));
  const __m512i half = _mm512_set1_epi64(0xffffffff);
  const __m512i t = _mm512_add_epi64(
      _mm512_add_epi64(_mm512_and_si512(low, half), _mm512_srli_epi64(low, 32)),
      _mm512_add_epi64(_mm512_and_si512(s.high, half), _mm512_srli_epi64(s.high, 32)));
  return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(t));
}
inline constexpr std::size_t kMaxRun = std::size_t{1} << 19;

// Load a block, copy it and add it to the sum as asked. Opaque when copied: one read only (E-20).
template <bool kCopy, bool kSum>
URNIC_FUSED __m512i take(const std::uint8_t* p, std::uint8_t* dst, Sum& sum) {
  __m512i v = _mm512_loadu_si512(p);
  if constexpr (kCopy) {
    asm volatile("" : "+v"(v));
    _mm512_storeu_si512(dst, v);
  }
  if constexpr (kSum) add(sum, v);
  return v;
}

URNIC_FUSED __m512i fold(__m512i x, __m512i k, __m512i next) {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
                                   _mm512_clmulepi64_epi128(x, k, 0x11), next, 0x96);
}
URNIC_FUSED __m512i to_end(__m512i x, std::size_t distance, __m512i acc) {
  return fold(x, _mm512_load_si512(&kToEnd[distance]), acc);
}

// The CRC of the 128-bit number that is congruent to the whole message.
URNIC_FUSED std::uint32_t reduce(__m512i x) {
  const __m256i y = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  const __m128i z = _mm_xor_si128(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
  const std::uint64_t c = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(z)));
  return static_cast<std::uint32_t>(
      _mm_crc32_u64(c, static_cast<std::uint64_t>(_mm_extract_epi64(z, 1))));
}

// The blocks' ends: a value already folded, and up to three blocks still to be read behind it.
template <bool kCopy, bool kSum>
URNIC_FUSED __m512i fold_rest(__m512i acc, const std::uint8_t* p, std::uint8_t* dst,
                              std::size_t rest, Sum& sum) {
  for (std::size_t i = 0; i < rest; ++i) {
    const __m512i v = take<kCopy, kSum>(p + 64 * i, dst + 64 * i, sum);
    acc = to_end(v, rest - 1 - i, acc);
    if (i + 1 == rest) acc = _mm512_mask_xor_epi64(acc, 0xc0, acc, v);
  }
  return acc;
}

// 65..kMaxRun bytes.
template <bool kCopy, bool kSum>
URNIC_FUSED void run(const std::uint8_t* p, std::uint8_t* dst, std::size_t n, std::uint32_t& crc,
                     std::uint64_t& sum_out) {
  Sum sum = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  const std::size_t first = (n - 1) % 64 + 1;  // bytes of the first block
  const __mmask64 front = ~std::uint64_t{0} >> (64 - first);
  const __mmask64 back = ~std::uint64_t{0} << (64 - first);

  // Only the bytes of the first block are loaded: the others are loaded with their own block.
  __m512i head = _mm512_maskz_loadu_epi8(front, p);
  if constexpr (kCopy) {
    asm volatile("" : "+v"(head));
    _mm512_mask_storeu_epi8(dst, front, head);
  }
  head = _mm512_maskz_expand_epi8(back, head);
  if constexpr (kSum) add(sum, head);
  const __m512i state = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc)));
  head = _mm512_xor_si512(head, _mm512_maskz_expand_epi8(back, state));
  p += first;
  dst += first;

  // A first block of less than four bytes leaves part of the state to the second.
  const std::uint32_t left = first < 4 ? crc >> (8 * first) : 0;
  __m512i second = take<kCopy, kSum>(p, dst, sum);
  second =
      _mm512_xor_si512(second, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(left))));
  p += 64;
  dst += 64;

  std::size_t blocks = (n - first) / 64 - 1;  // still to be read
  __m512i acc;
  if (blocks < 2) {
    acc = to_end(head, 1 + blocks, _mm512_setzero_si512());
    acc = to_end(second, blocks, acc);
    if (blocks == 0) acc = _mm512_mask_xor_epi64(acc, 0xc0, acc, second);
  } else {
    // Four blocks side by side, each folded over the 256 bytes to its successor.
    constexpr auto kBy2048 = crc32c_math::fold_by(2048);
    const __m512i k = _mm512_broadcast_i32x4(
        _mm_set_epi64x(static_cast<long long>(kBy2048.hi), static_cast<long long>(kBy2048.lo)));
    __m512i x[4] = {head, second, take<kCopy, kSum>(p, dst, sum),
                    take<kCopy, kSum>(p + 64, dst + 64, sum)};
    p += 128;
    dst += 128;
    blocks -= 2;
    for (; blocks >= 4; blocks -= 4) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        x[i] = fold(x[i], k, take<kCopy, kSum>(p + 64 * i, dst + 64 * i, sum));
      }
      p += 256;
      dst += 256;
    }
    acc = to_end(x[0], 3 + blocks, _mm512_setzero_si512());
    acc = to_end(x[1], 2 + blocks, acc);
    __m512i acc2 = to_end(x[2], 1 + blocks, _mm512_setzero_si512());
    acc2 = to_end(x[3], blocks, acc2);
    if (blocks == 0) acc2 = _mm512_mask_xor_epi64(acc2, 0xc0, acc2, x[3]);
    acc = _mm512_xor_si512(acc, acc2);
  }
  acc = fold_rest<kCopy, kSum>(acc, p, dst, blocks, sum);
  crc = reduce(acc);
  if constexpr (kSum) {
    // After an odd number of filling zeros every byte stands in the other half of its word
    // (RFC 1071, 2(B)).
    const std::uint16_t folded = inet_fold(total(sum));
    sum_out += (first % 2 != 0) ? __builtin_bswap16(folded) : folded;
  }
}

template <bool kCopy, class T>
URNIC_FUSED T take_scalar(const std::uint8_t* p, std::uint8_t* dst) {
  T v;
  std::memcpy(&v, p, sizeof v);
  if constexpr (kCopy) {
    asm volatile("" : "+r"(v));
    std::memcpy(dst, &v, sizeof v);
  }
  return v;
}

// Up to 64 bytes: the crc32 instruction is done before a fold would be reduced.
template <bool kCopy, bool kSum>
URNIC_FUSED void small(const std::uint8_t* p, std::uint8_t* dst, std::size_t n, std::uint32_t& crc,
                       std::uint64_t& sum) {
  std::uint64_t c = crc;
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const auto v = take_scalar<kCopy, std::uint64_t>(p + i, dst + i);
    c = _mm_crc32_u64(c, v);
    if constexpr (kSum) sum = fused_detail::add_words(sum, v);
  }
  auto s = static_cast<std::uint32_t>(c);
  if ((n & 4) != 0) {
    const auto v = take_scalar<kCopy, std::uint32_t>(p + i, dst + i);
    s = _mm_crc32_u32(s, v);
    if constexpr (kSum) sum += v;
    i += 4;
  }
  if ((n & 2) != 0) {
    const auto v = take_scalar<kCopy, std::uint16_t>(p + i, dst + i);
    s = _mm_crc32_u16(s, v);
    if constexpr (kSum) sum += v;
    i += 2;
  }
  if ((n & 1) != 0) {
    const auto v = take_scalar<kCopy, std::uint8_t>(p + i, dst + i);
    s = _mm_crc32_u8(s, v);
    if constexpr (kSum) sum += v;
  }
  crc = s;
}

template <bool kCopy, bool kSum>
URNIC_TARGET FusedSums run_all(std::uint8_t* dst, ByteView bytes, std::uint32_t crc) {
  const std::uint8_t* p = bytes.data();
  std::size_t n = bytes.size();
  std::uint64_t sum = 0;
  while (n > 64) {
    const std::size_t now = std::min(n, kMaxRun);
    run<kCopy, kSum>(p, dst, now, crc, sum);
    p += now;
    dst += now;
    n -= now;
  }
  small<kCopy, kSum>(p, dst, n, crc, sum);
  return {crc, kSum ? fused_detail::to_network_sum(sum) : 0};
}

// Without a copy the destination runs along with the source and is never written.
URNIC_FUSED std::uint8_t* unwritten(ByteView bytes) {
  return const_cast<std::uint8_t*>(bytes.data());
}

URNIC_TARGET FusedSums crc_sum(ByteView bytes, std::uint32_t crc) {
  return run_all<false, true>(unwritten(bytes), bytes, crc);
}
URNIC_TARGET FusedSums copy_crc_sum(std::uint8_t* dst, ByteView bytes, std::uint32_t crc) {
  return run_all<true, true>(dst, bytes, crc);
}
URNIC_TARGET std::uint32_t crc_only(std::uint32_t crc, ByteView bytes) {
  return run_all<false, false>(unwritten(bytes), bytes, crc).crc;
}
// The checksum alone needs no VPCLMULQDQ.
std::uint32_t sum_only(ByteView bytes) {
  return kFusedAvx512.sum(bytes);
}
std::uint32_t copy_sum(std::uint8_t* dst, ByteView bytes) {
  return kFusedAvx512.copy_sum(dst, bytes);
}

}  // namespace

const FusedKernelSet kFusedVpclmul = {
    "avx512+vpclmulqdq", crc_sum, copy_crc_sum, crc_only, copy_sum, sum_only};

}  // namespace urnic
#endif
