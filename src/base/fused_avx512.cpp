// The kernels for AVX-512 without VPCLMULQDQ (Skylake-SP, Cascade Lake): three streams by the crc32
// instruction, a fourth by 128-bit PCLMULQDQ, the checksum and the copy on 512-bit registers.
#include <algorithm>
#include <cstring>

#include "base/crc32c_math.h"
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
  // Sums of the 32-bit words and of their upper halves; the lower halves follow from both.
  struct Acc {
    __m512i all;
    __m512i high;
  };
  URNIC_VEC Reg load(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
  URNIC_VEC void store(std::uint8_t* p, Reg v) { _mm512_storeu_si512(p, v); }
  URNIC_VEC __mmask8 mask(std::size_t n) { return static_cast<__mmask8>((1u << (n / 8)) - 1); }
  URNIC_VEC Reg load_part(const std::uint8_t* p, std::size_t n) {
    return _mm512_maskz_loadu_epi64(mask(n), p);
  }
  URNIC_VEC void store_part(std::uint8_t* p, Reg v, std::size_t n) {
    _mm512_mask_storeu_epi64(p, mask(n), v);
  }
  URNIC_VEC void opaque(Reg& v) { asm volatile("" : "+v"(v)); }
  URNIC_VEC Acc zero() { return {_mm512_setzero_si512(), _mm512_setzero_si512()}; }
  URNIC_VEC void add(Acc& a, Reg v) {
    a.all = _mm512_add_epi32(a.all, v);
    a.high = _mm512_add_epi32(a.high, _mm512_srli_epi32(v, 16));
  }
  URNIC_VEC std::uint64_t total(const Acc& a) {
    const __m512i low = _mm512_sub_epi32(a.all, _mm512_slli_epi32(a.high, 16));
    const __m512i half = _mm512_set1_epi64(0xffffffff);
    const __m512i s = _mm512_add_epi64(
        _mm512_add_epi64(_mm512_and_si512(low, half), _mm512_srli_epi64(low, 32)),
        _mm512_add_epi64(_mm512_and_si512(a.high, half), _mm512_srli_epi64(a.high, 32)));
    return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(s));
  }
};

#include "base/fused_threeway.inc"

}  // namespace

const FusedKernelSet kFusedAvx512 = {"avx512+pclmul", crc_sum,  copy_crc_sum,
                                     crc_only,        copy_sum, sum_only};

}  // namespace urnic
#endif
