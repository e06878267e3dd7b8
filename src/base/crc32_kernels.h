// The kernels of crc32.h, one set per instruction set. Only for base/ itself and its tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/crc32.h"

namespace urnic {

struct Crc32KernelSet {
  std::string_view name;
  std::uint32_t (*update)(std::uint32_t state, ByteView);
  std::uint32_t (*masked)(std::uint32_t state, ByteView, const Crc32Mask&);
  std::uint32_t (*copy)(std::uint32_t state, std::uint8_t* dst, ByteView);
};

// Call only kernels that cpu_features() permits.
extern const Crc32KernelSet kCrc32Isal;  // runs on every CPU; uses the CRC of ISA-L and memcpy
extern const Crc32KernelSet kCrc32Vpclmul;

// The kernels that this CPU supports, slowest first.
std::size_t crc32_kernel_count();
const Crc32KernelSet& crc32_kernel(std::size_t index);

}  // namespace urnic
