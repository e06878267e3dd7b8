// The kernels for SSE4.2 with PCLMULQDQ (every x86-64 server since 2010).
#include <algorithm>
#include <cstring>

#include "base/crc_math.h"
#include "base/fused_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace urnic {
namespace {

#define URNIC_TARGET __attribute__((target("sse4.2,pclmul")))
#define URNIC_VEC static inline __attribute__((always_inline)) URNIC_TARGET
#define URNIC_FOLD_LANE 0

struct Vec {
  static constexpr std::size_t kBytes = 16;
  using Reg = __m128i;
  // Sums of the 32-bit words and of their upper halves; the lower halves are derived from both.
  struct Acc {
    __m128i all;
    __m128i high;
  };
  URNIC_VEC Reg load(const std::uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  URNIC_VEC void store(std::uint8_t* p, Reg v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
  }
  URNIC_VEC Reg load_part(const std::uint8_t* p, std::size_t) {  // always 8 bytes
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  }
  URNIC_VEC void opaque(Reg& v) { asm volatile("" : "+x"(v)); }
  URNIC_VEC Acc zero() { return {_mm_setzero_si128(), _mm_setzero_si128()}; }
  URNIC_VEC void add(Acc& a, Reg v) {
    a.all = _mm_add_epi32(a.all, v);
    a.high = _mm_add_epi32(a.high, _mm_srli_epi32(v, 16));
  }
  // At most 1024 additions of 17 bits and the lanes of one register: 32 bits are enough.
  URNIC_VEC std::uint32_t total(const Acc& a) {
    const __m128i low = _mm_sub_epi32(a.all, _mm_slli_epi32(a.high, 16));
    __m128i s = _mm_add_epi32(low, a.high);
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(s));
  }
};

#include "base/fused_threeway.inc"

}  // namespace

const FusedKernelSet kFusedSse42 = {"sse4.2+pclmul", crc_sum,  copy_crc_sum,
                                    crc_only,        copy_sum, sum_only};

}  // namespace urnic
#endif
