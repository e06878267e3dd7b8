// Adds bytes to an XXH3 state of <xxhash.h> with 512-bit registers, for processors that have them
// (CpuFeatures::avx512). The result is the same as without.
#pragma once

#include <cstddef>
#include <cstdint>

namespace urnic::cli {

void xxh3_update_avx512(void* state, const std::uint8_t* bytes, std::size_t length);

}  // namespace urnic::cli
