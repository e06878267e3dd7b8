# The intrinsics of GCC 12 intentionally leave registers undefined, and GCC warns about that.
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/src/base/crc32_vpclmul.cpp
  ${CMAKE_SOURCE_DIR}/src/base/fused_avx512.cpp ${CMAKE_SOURCE_DIR}/src/base/fused_vpclmul.cpp
  PROPERTIES COMPILE_OPTIONS "-Wno-maybe-uninitialized;-Wno-uninitialized")
