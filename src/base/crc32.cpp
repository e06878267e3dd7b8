#include "base/crc32.h"

#include <isa-l/crc.h>

namespace urnic {

std::uint32_t crc32_update(std::uint32_t state, ByteView bytes) {
  if (bytes.empty()) return state;
  // ISA-L takes and returns finished values.
  return crc32_finish(crc32_gzip_refl(crc32_finish(state), bytes.data(), bytes.size()));
}

std::uint32_t crc32_update_portable(std::uint32_t state, ByteView bytes) {
  constexpr std::uint32_t kPolynomial = 0xedb88320u;  // reflected
  for (const std::uint8_t b : bytes) {
    state ^= b;
    for (int i = 0; i < 8; ++i) state = state >> 1 ^ ((state & 1) != 0 ? kPolynomial : 0);
  }
  return state;
}

}  // namespace urnic
