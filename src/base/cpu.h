// What this CPU can run, asked once. Kernels are compiled for their own instruction sets function
// by function, so the library itself runs on any x86-64.
#pragma once

namespace urnic {

struct CpuFeatures {
  bool sse42 = false;       // SSE4.2 (the crc32 instruction) and PCLMULQDQ
  bool avx2 = false;        // AVX2
  bool avx512 = false;      // AVX-512 F, BW, DQ, VL, with SSE4.2 and PCLMULQDQ
  bool vpclmulqdq = false;  // avx512, VBMI2, VNNI and VPCLMULQDQ on 512-bit registers
};

// Thread safe; cheap after the first call. Includes the operating system's support for the wide
// registers.
const CpuFeatures& cpu_features();

}  // namespace urnic
