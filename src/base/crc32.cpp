#include "base/crc32.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/cpu.h"
#include "base/crc32_kernels.h"
#include "base/crc_math.h"

namespace urnic {
namespace {

// ---- four bytes at a time
// Table k: the CRC of a byte followed by k zero bytes.
using WordTables = std::array<std::array<std::uint32_t, 256>, 4>;
constexpr WordTables kWordTables = [] {
  WordTables t{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (auto& table : t) {
      for (int bit = 0; bit < 8; ++bit) state = Crc32Math::times_x(state);
      table[byte] = state;
    }
  }
  return t;
}();

// ---- ISA-L

std::uint32_t isal_masked(std::uint32_t state, ByteView bytes, const Crc32Mask& mask) {
  std::array<std::uint64_t, Crc32Mask::kMost / 8> words{}, ones;
  auto* const first = reinterpret_cast<std::uint8_t*>(words.data());
  const std::size_t n = std::min(bytes.size(), Crc32Mask::kMost);
  if (n == 0) return state;
  if (n == Crc32Mask::kMost) [[likely]] {
    std::memcpy(first, bytes.data(), Crc32Mask::kMost);
  } else {
    std::memcpy(first, bytes.data(), n);
  }
  std::memcpy(ones.data(), mask.ones.data(), sizeof ones);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] |= ones[i];
  return crc32_update_isal(crc32_update_isal(state, {first, n}), bytes.subspan(n));
}

// The CRC is of the copied bytes: memory shared with a peer may have changed meanwhile (E-20).
std::uint32_t isal_copy(std::uint32_t state, std::uint8_t* dst, ByteView bytes) {
  if (bytes.empty()) return state;
  std::memcpy(dst, bytes.data(), bytes.size());
  return crc32_update_isal(state, {dst, bytes.size()});
}

// ---- the fastest kernel; fused.cpp explains why this is safe at any time and from any thread

const Crc32KernelSet& best() {
  return crc32_kernel(crc32_kernel_count() - 1);
}

std::uint32_t resolve_update(std::uint32_t state, ByteView bytes);
std::uint32_t resolve_masked(std::uint32_t state, ByteView bytes, const Crc32Mask& mask);
std::uint32_t resolve_copy(std::uint32_t state, std::uint8_t* dst, ByteView bytes);

constinit std::atomic<decltype(Crc32KernelSet::update)> chosen_update{resolve_update};
constinit std::atomic<decltype(Crc32KernelSet::masked)> chosen_masked{resolve_masked};
constinit std::atomic<decltype(Crc32KernelSet::copy)> chosen_copy{resolve_copy};

std::uint32_t resolve_update(std::uint32_t state, ByteView bytes) {
  chosen_update.store(best().update, std::memory_order_relaxed);
  return best().update(state, bytes);
}
std::uint32_t resolve_masked(std::uint32_t state, ByteView bytes, const Crc32Mask& mask) {
  chosen_masked.store(best().masked, std::memory_order_relaxed);
  return best().masked(state, bytes, mask);
}
std::uint32_t resolve_copy(std::uint32_t state, std::uint8_t* dst, ByteView bytes) {
  chosen_copy.store(best().copy, std::memory_order_relaxed);
  return best().copy(state, dst, bytes);
}

}  // namespace

const Crc32KernelSet kCrc32Isal = {"isa-l", crc32_update_isal, isal_masked, isal_copy};

std::size_t crc32_kernel_count() {
#if defined(__x86_64__)
  return cpu_features().vpclmulqdq ? 2 : 1;
#else
  return 1;
#endif
}

const Crc32KernelSet& crc32_kernel(std::size_t index) {
#if defined(__x86_64__)
  if (index == 1) return kCrc32Vpclmul;
#endif
  (void)index;
  return kCrc32Isal;
}

std::uint32_t crc32_update(std::uint32_t state, ByteView bytes) {
  return chosen_update.load(std::memory_order_relaxed)(state, bytes);
}
std::uint32_t crc32_update_masked(std::uint32_t state, ByteView bytes, const Crc32Mask& mask) {
  return chosen_masked.load(std::memory_order_relaxed)(state, bytes, mask);
}
std::uint32_t crc32_update_copy(std::uint32_t state, std::uint8_t* dst, ByteView bytes) {
  return chosen_copy.load(std::memory_order_relaxed)(state, dst, bytes);
}

std::uint32_t crc32_update_words(std::uint32_t state, ByteView bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    state ^= load_le32(bytes.data() + i);
    state = kWordTables[3][state & 0xff] ^ kWordTables[2][state >> 8 & 0xff] ^
            kWordTables[1][state >> 16 & 0xff] ^ kWordTables[0][state >> 24];
  }
  return state;
}

std::uint32_t crc32_update_isal(std::uint32_t state, ByteView bytes) {
  if (bytes.empty()) return state;
  // ISA-L takes and returns finished CRC values.
  return crc32_finish(crc32_gzip_refl(crc32_finish(state), bytes.data(), bytes.size()));
}

std::uint32_t crc32_update_portable(std::uint32_t state, ByteView bytes) {
  for (const std::uint8_t b : bytes) {
    state ^= b;
    for (int i = 0; i < 8; ++i) state = Crc32Math::times_x(state);
  }
  return state;
}

}  // namespace urnic
