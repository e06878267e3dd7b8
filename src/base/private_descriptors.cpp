#include "base/private_descriptors.h"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace urnic::private_descriptors {
namespace {

// bound: numbers of private descriptors; beyond: a child keeps the descriptor; test:
// PrivateDescriptors.AreTakenFromTheLowestOn
constexpr std::size_t kMost = std::size_t{1} << 20, kBits = 64;

// Zero pages that were never touched use no memory.
std::atomic<std::uint64_t> words[kMost / kBits];

std::uint64_t bit_of(std::size_t fd) {
  return std::uint64_t{1} << fd % kBits;
}

}  // namespace

void add(int fd) {
  const auto at = static_cast<std::size_t>(fd);
  if (fd >= 0 && at < kMost) words[at / kBits].fetch_or(bit_of(at));
}

void remove(int fd) {
  const auto at = static_cast<std::size_t>(fd);
  if (fd >= 0 && at < kMost) words[at / kBits].fetch_and(~bit_of(at));
}

int take() {
  for (std::size_t word = 0; word < kMost / kBits; ++word) {
    const std::uint64_t bits = words[word].load();
    if (bits == 0) continue;
    const std::size_t fd = word * kBits + static_cast<std::size_t>(std::countr_zero(bits));
    remove(static_cast<int>(fd));
    return static_cast<int>(fd);
  }
  return -1;
}

}  // namespace urnic::private_descriptors
