// The kernels for AVX-512 without VPCLMULQDQ (Skylake-SP, Cascade Lake): three streams with the
// crc32 instruction, a fourth with 128-bit PCLMULQDQ, checksum and copy in 512-bit registers.
#include <algorithm>
#include <cstring>

#include "base/crc_math.h"
#include "base/fused_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace urnic {
namespace {

#define URNIC_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi2,sse4.2,pclmul")))
#define URNIC_VEC static inline __attribute__((always_inline)) URNIC_TARGET
#define URNIC_FOLD_LANE 1

struct Vec {
  static constexpr std::size_t kBytes = 64;
  using Reg = __m512i;
  // Sums of the 32-bit words and of their upper halves; the lower halves are derived from both.
  struct Acc {
    __m512i all;
    __m512i high;
  };
  URNIC_VEC Reg load(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
  // Two half stores: reading words back from a full 64-byte store would wait for the cache.
  URNIC_VEC void store(std::uint8_t* p, Reg v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), _mm512_extracti64x4_epi64(v, 1));
  }
  URNIC_VEC __mmask8 mask(std::size_t n) { return static_cast<__mmask8>((1u << (n / 8)) - 1); }
  URNIC_VEC Reg load_part(const std::uint8_t* p, std::size_t n) {
    return _mm512_maskz_loadu_epi64(mask(n), p);
  }
  URNIC_VEC void opaque(Reg& v) { asm volatile("" : "+v"(v)); }
  URNIC_VEC Acc zero() { return {_mm512_setzero_si512(), _mm512_setzero_si512()}; }
  URNIC_VEC void add(Acc& a, Reg v) {
    a.all = _mm512_add_epi32(a.all, v);
    a.high = _mm512_add_epi32(a.high, _mm512_srli_epi32(v, 16));
  }
  // At most 1024 additions of 17 bits and the lanes of one register: 32 bits are enough.
  URNIC_VEC std::uint32_t total(const Acc& a) {
    const __m512i low = _mm512_sub_epi32(a.all, _mm512_slli_epi32(a.high, 16));
    return static_cast<std::uint32_t>(_mm512_reduce_add_epi32(_mm512_add_epi32(low, a.high)));
  }
};

#include "base/fused_threeway.inc"

}  // namespace

const FusedKernelSet kFusedAvx512 = {"avx512+pclmul", crc_sum,  copy_crc_sum,
                                     crc_only,        copy_sum, sum_only};

}  // namespace urnic
#endif
