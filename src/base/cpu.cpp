#include "base/cpu.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace urnic {
namespace {

CpuFeatures detect() {
  CpuFeatures f;
#if defined(__x86_64__)
  __builtin_cpu_init();
  f.sse42 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  f.avx2 = f.sse42 && __builtin_cpu_supports("avx2");
  f.avx512 = f.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("bmi2");
  f.vpclmulqdq = f.avx512 && __builtin_cpu_supports("avx512vbmi2") &&
                 __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("vpclmulqdq");
#elif defined(__aarch64__)
  f.armv8_crc = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#endif
  return f;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

}  // namespace urnic
