// CMakeLists.txt compiles this file with -mavx512f, so it includes no header with inline functions
// that other files have as well: the linker could keep this file's for all.
#include "cli/xxh3_avx512.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace urnic::cli {

void xxh3_update_avx512(void* state, const std::uint8_t* bytes, std::size_t length) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), bytes, length);
}

}  // namespace urnic::cli
