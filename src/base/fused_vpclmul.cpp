// The kernels for AVX-512 with VPCLMULQDQ (Ice Lake, Zen 4 and later): the same 512-bit register is
// folded for the CRC and added for the checksum.
//
// The message is processed as whole 64-byte blocks aligned to its end. The first block is padded
// with zeros at its front, which change neither a CRC that starts at zero nor a sum. The running
// CRC is added to the first four bytes of the message. No bytes remain for scalar code, and the
// only serial step is the reduction of the last 128 bits.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/crc_math.h"
#include "base/fused_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace urnic {
namespace {

#define URNIC_TARGET                                                                           \
  __attribute__((                                                                              \
      target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,avx512vnni,vpclmulqdq,avx2,bmi2," \
             "sse4.2,pclmul")))
#define URNIC_FUSED static inline __attribute__((always_inline)) URNIC_TARGET

inline constexpr std::size_t kMaxDistance = 6;
constexpr auto kToEnd = Crc32cMath::blocks_to_end<kMaxDistance + 1>();

// Sums of the bytes at even and odd positions, one multiply-add each. There are four of each, used
// in turn, because a multiply-add has a latency of five cycles. After kMaxRun bytes the lanes of
// all together hold 24 and 16 bits, so that everything can be added in 32 bits.
struct Sum {
  __m512i even[4];
  __m512i odd[4];
};
URNIC_FUSED Sum zero_sum() {
  const __m512i zero = _mm512_setzero_si512();
  return {{zero, zero, zero, zero}, {zero, zero, zero, zero}};
}
template <int kTurn>
URNIC_FUSED void add(Sum& s, __m512i v) {
  s.even[kTurn] = _mm512_dpbusd_epi32(s.even[kTurn], v, _mm512_set1_epi16(0x0001));
  s.odd[kTurn] = _mm512_dpbusd_epi32(s.odd[kTurn], v, _mm512_set1_epi16(0x0100));
}
URNIC_FUSED __m512i add_up(const __m512i (&v)[4]) {
  return _mm512_add_epi32(_mm512_add_epi32(v[0], v[1]), _mm512_add_epi32(v[2], v[3]));
}
// The sum of little-endian words.
URNIC_FUSED std::uint32_t total(const Sum& s) {
  const __m512i all = _mm512_add_epi32(add_up(s.even), _mm512_slli_epi32(add_up(s.odd), 8));
  return static_cast<std::uint32_t>(_mm512_reduce_add_epi32(all));
}

// Loads a block, copies it and adds it to the sum, as selected. The value is opaque to the
// compiler, so that memory is read only once (E-20); a second read would also cost as much as the
// first, two cache lines each time.
template <bool kCopy, bool kSum, int kTurn>
URNIC_FUSED __m512i take(const std::uint8_t* p, std::uint8_t* dst, Sum& sum) {
  __m512i v = _mm512_loadu_si512(p);
  if constexpr (kCopy || kSum) asm volatile("" : "+v"(v));
  if constexpr (kCopy) _mm512_storeu_si512(dst, v);
  if constexpr (kSum) add<kTurn>(sum, v);
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

// The progress of a run: the position, the remaining bytes, and the sum.
struct Cursor {
  const std::uint8_t* p;
  std::uint8_t* dst;
  Sum sum;
};
template <bool kCopy, bool kSum, int kTurn>
URNIC_FUSED __m512i next_block(Cursor& at) {
  const __m512i v = take<kCopy, kSum, kTurn>(at.p, at.dst, at.sum);
  at.p += 64;
  at.dst += 64;
  return v;
}

// The first two blocks: `first` bytes with zeros in front, with the running CRC added to the first
// four bytes. If the first block is shorter, part of the CRC goes into the second.
template <bool kCopy, bool kSum>
URNIC_FUSED void begin(Cursor& at, std::size_t first, std::uint32_t crc, __m512i x[2]) {
  const __mmask64 front = ~std::uint64_t{0} >> (64 - first);
  const __mmask64 back = ~std::uint64_t{0} << (64 - first);
  // Loads only these bytes: later ones are loaded with their own block.
  __m512i head = _mm512_maskz_loadu_epi8(front, at.p);
  if constexpr (kCopy) {
    asm volatile("" : "+v"(head));
    _mm512_mask_storeu_epi8(at.dst, front, head);
  }
  head = _mm512_maskz_expand_epi8(back, head);
  if constexpr (kSum) add<0>(at.sum, head);
  at.p += first;
  at.dst += first;
  const __m512i state = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc)));
  x[0] = _mm512_xor_si512(head, _mm512_maskz_expand_epi8(back, state));
  const std::uint32_t left = first < 4 ? crc >> (8 * first) : 0;
  x[1] = _mm512_xor_si512(next_block<kCopy, kSum, 1>(at),
                          _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(left))));
}

// Combines `kBlocks` blocks already loaded or folded and `rest` more blocks to read into one
// 128-bit number at the place of the very last lane; returns its CRC.
template <bool kCopy, bool kSum, std::size_t kBlocks>
URNIC_FUSED std::uint32_t finish(Cursor& at, const __m512i (&x)[kBlocks], std::size_t rest) {
  __m512i acc[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kBlocks; ++i) {
    acc[i % 2] = to_end(x[i], kBlocks - 1 - i + rest, acc[i % 2]);
  }
  __m512i last = x[kBlocks - 1];
  for (; rest != 0; --rest) {
    last = next_block<kCopy, kSum, 2>(at);
    acc[0] = to_end(last, rest - 1, acc[0]);
  }
  acc[0] = _mm512_mask_xor_epi64(acc[0], 0xc0, acc[0], last);
  return reduce(_mm512_xor_si512(acc[0], acc[1]));
}

// Folds the next 256 bytes onto four blocks.
template <bool kCopy, bool kSum>
URNIC_FUSED void fold_four(Cursor& at, __m512i (&x)[4]) {
  constexpr auto kBy2048 = Crc32cMath::fold_by(2048);
  const __m512i k = _mm512_broadcast_i32x4(
      _mm_set_epi64x(static_cast<long long>(kBy2048.hi), static_cast<long long>(kBy2048.lo)));
  x[0] = fold(x[0], k, next_block<kCopy, kSum, 0>(at));
  x[1] = fold(x[1], k, next_block<kCopy, kSum, 1>(at));
  x[2] = fold(x[2], k, next_block<kCopy, kSum, 2>(at));
  x[3] = fold(x[3], k, next_block<kCopy, kSum, 3>(at));
}

inline constexpr std::size_t kMaxRun = 65536;  // must be even

// For 65..kMaxRun bytes.
template <bool kCopy, bool kSum>
URNIC_FUSED void run(const std::uint8_t* p, std::uint8_t* dst, std::size_t n, std::uint32_t& crc,
                     std::uint64_t& sum_out) {
  Cursor at = {p, dst, zero_sum()};
  const std::size_t first = (n - 1) % 64 + 1;  // bytes of the first block
  std::size_t blocks = (n - first) / 64 - 1;   // blocks to read after the first two
  __m512i x[4];
  begin<kCopy, kSum>(at, first, crc, x);
  if (blocks < 2) {
    const __m512i two[2] = {x[0], x[1]};
    crc = finish<kCopy, kSum>(at, two, blocks);
  } else {
    x[2] = next_block<kCopy, kSum, 2>(at);
    x[3] = next_block<kCopy, kSum, 3>(at);
    for (blocks -= 2; blocks >= 4; blocks -= 4) fold_four<kCopy, kSum>(at, x);
    crc = finish<kCopy, kSum>(at, x, blocks);
  }
  if constexpr (kSum) {
    // After an odd number of padding zeros, every byte is in the other half of its word (RFC 1071,
    // 2(B)).
    const std::uint32_t sum = fused_detail::to_network_sum(total(at.sum));
    sum_out += (first % 2 != 0) ? __builtin_bswap16(static_cast<std::uint16_t>(sum)) : sum;
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

// For short inputs, where the crc32 instruction is faster than folding and reducing. Returns the
// sum of little-endian words.
template <bool kCopy, bool kSum>
URNIC_FUSED std::uint64_t small(const std::uint8_t* p, std::uint8_t* dst, std::size_t n,
                                std::uint32_t& crc) {
  std::uint64_t c = crc;
  unsigned __int128 sum = 0;  // sum of 64-bit words, carries in the upper half
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const auto v = take_scalar<kCopy, std::uint64_t>(p + i, dst + i);
    c = _mm_crc32_u64(c, v);
    if constexpr (kSum) sum += v;
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
  return kSum ? fused_detail::from_wide(sum) : 0;
}

inline constexpr std::size_t kSmall = 160;

// Not inlined, so that short inputs do not pay for its many registers.
template <bool kCopy, bool kSum>
URNIC_TARGET __attribute__((noinline)) FusedSums run_long(const std::uint8_t* p, std::uint8_t* dst,
                                                          std::size_t n, std::uint32_t crc) {
  std::uint64_t sum = 0;
  while (n > kSmall) {
    const std::size_t now = std::min(n, kMaxRun);
    run<kCopy, kSum>(p, dst, now, crc, sum);
    p += now;
    dst += now;
    n -= now;
  }
  if (n != 0) {
    const std::uint64_t last = small<kCopy, kSum>(p, dst, n, crc);
    sum += kSum ? fused_detail::to_network_sum(last) : 0;
  }
  return fused_detail::make_sums(crc, kSum ? inet_fold(sum) : 0);
}

template <bool kCopy, bool kSum>
URNIC_FUSED FusedSums run_all(std::uint8_t* dst, ByteView bytes, std::uint32_t crc) {
  if (bytes.size() > kSmall) {
    return run_long<kCopy, kSum>(bytes.data(), dst, bytes.size(), crc);
  }
  const std::uint64_t sum = small<kCopy, kSum>(bytes.data(), dst, bytes.size(), crc);
  return fused_detail::make_sums(crc, kSum ? fused_detail::to_network_sum(sum) : 0);
}

// Without a copy, the destination pointer follows the source and is never written to.
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
// The checksum alone does not need VPCLMULQDQ.
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
