// The features of this CPU, determined once. Each kernel function is compiled for its own
// instruction set, so the library itself runs on any x86-64 and any arm64.
#pragma once

namespace urnic {

struct CpuFeatures {
  bool sse42 = false;       // SSE4.2 (the crc32 instruction) and PCLMULQDQ
  bool avx2 = false;        // AVX2
  bool avx512 = false;      // AVX-512 F, BW, DQ, VL, with SSE4.2 and PCLMULQDQ
  bool vpclmulqdq = false;  // avx512, VBMI2, VNNI and VPCLMULQDQ on 512-bit registers
  bool armv8_crc = false;   // the CRC instructions of ARMv8
};

// Thread safe; cheap after the first call. Takes into account whether the operating system supports
// the wide registers.
const CpuFeatures& cpu_features();

}  // namespace urnic
