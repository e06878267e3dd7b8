#include "base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/crc_math.h"
#include "base/fused_kernels.h"

namespace urnic {
namespace {

// Slicing by eight: table[k][b] is byte b followed by k zero bytes.
using SlicingTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr SlicingTables make_tables() {
  SlicingTables t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t v = b;
    for (int i = 0; i < 8; ++i) v = Crc32cMath::times_x(v);
    t[0][b] = v;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t v = t[k - 1][b];
      t[k][b] = (v >> 8) ^ t[0][v & 0xff];
    }
  }
  return t;
}
constexpr SlicingTables kTables = make_tables();

using Update = std::uint32_t (*)(std::uint32_t, ByteView);

std::uint32_t resolve_and_run(std::uint32_t state, ByteView bytes);

// Constant-initialized, so that calls from initializers of other files work. Several threads may
// resolve it at once; all of them store the same value.
constinit std::atomic<Update> chosen{resolve_and_run};

std::uint32_t resolve_and_run(std::uint32_t state, ByteView bytes) {
  const Update best = fused_best().crc;
  chosen.store(best, std::memory_order_relaxed);
  return best(state, bytes);
}

}  // namespace

std::uint32_t crc32c_update_portable(std::uint32_t state, ByteView bytes) {
  const std::uint8_t* p = bytes.data();
  std::size_t n = bytes.size();
  const auto& t = kTables;
  for (; n >= 8; n -= 8, p += 8) {
    const std::uint32_t a = state ^ load_le32(p);
    const std::uint32_t b = load_le32(p + 4);
    state = t[7][a & 0xff] ^ t[6][(a >> 8) & 0xff] ^ t[5][(a >> 16) & 0xff] ^ t[4][a >> 24] ^
            t[3][b & 0xff] ^ t[2][(b >> 8) & 0xff] ^ t[1][(b >> 16) & 0xff] ^ t[0][b >> 24];
  }
  for (; n != 0; --n, ++p) state = (state >> 8) ^ t[0][(state ^ *p) & 0xff];
  return state;
}

std::uint32_t crc32c_update_isal(std::uint32_t state, ByteView bytes) {
  // ISA-L takes a mutable pointer, which it only reads, and an int length.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kMost);
    state = crc32_iscsi(const_cast<std::uint8_t*>(bytes.data()), static_cast<int>(n), state);
    bytes = bytes.subspan(n);
  }
  return state;
}

std::uint32_t crc32c_update(std::uint32_t state, ByteView bytes) {
  return chosen.load(std::memory_order_relaxed)(state, bytes);
}

std::uint32_t crc32c(ByteView bytes) {
  return crc32c_finish(crc32c_update(kCrc32cInit, bytes));
}

}  // namespace urnic
