// The kernels for AVX2: like those for SSE4.2, with the checksum in wider registers.
#include <algorithm>
#include <cstring>

#include "base/crc_math.h"
#include "base/fused_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace urnic {
namespace {

#define URNIC_TARGET __attribute__((target("avx2,sse4.2,pclmul")))
#define URNIC_VEC static inline __attribute__((always_inline)) URNIC_TARGET
#define URNIC_FOLD_LANE 0

struct Vec {
  static constexpr std::size_t kBytes = 32;
  using Reg = __m256i;
  // Sums of the 32-bit words and of their upper halves; the lower halves are derived from both.
  struct Acc {
    __m256i all;
    __m256i high;
  };
  URNIC_VEC Reg load(const std::uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  URNIC_VEC void store(std::uint8_t* p, Reg v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  }
  // A mask for the first n / 8 quadwords.
  URNIC_VEC __m256i mask(std::size_t n) {
    const __m256i count = _mm256_set1_epi64x(static_cast<long long>(n / 8));
    return _mm256_cmpgt_epi64(count, _mm256_setr_epi64x(0, 1, 2, 3));
  }
  URNIC_VEC Reg load_part(const std::uint8_t* p, std::size_t n) {
    return _mm256_maskload_epi64(reinterpret_cast<const long long*>(p), mask(n));
  }
  URNIC_VEC void opaque(Reg& v) { asm volatile("" : "+x"(v)); }
  URNIC_VEC Acc zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  URNIC_VEC void add(Acc& a, Reg v) {
    a.all = _mm256_add_epi32(a.all, v);
    a.high = _mm256_add_epi32(a.high, _mm256_srli_epi32(v, 16));
  }
  // At most 1024 additions of 17 bits and the lanes of one register: 32 bits are enough.
  URNIC_VEC std::uint32_t total(const Acc& a) {
    const __m256i low = _mm256_sub_epi32(a.all, _mm256_slli_epi32(a.high, 16));
    const __m256i t = _mm256_add_epi32(low, a.high);
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(s));
  }
};

#include "base/fused_threeway.inc"

}  // namespace

const FusedKernelSet kFusedAvx2 = {"avx2+pclmul", crc_sum,  copy_crc_sum,
                                   crc_only,      copy_sum, sum_only};

}  // namespace urnic
#endif
