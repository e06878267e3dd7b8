#include "base/private_descriptors.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace urnic::private_descriptors {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 20, kBits = 64;

// Of zeros that nobody has touched: no memory.
std::atomic<std::uint64_t> words[kMost / kBits];

}  // namespace

void add(int fd) {
  const auto at = static_cast<std::size_t>(fd);
  if (fd >= 0 && at < kMost) words[at / kBits].fetch_or(std::uint64_t{1} << at % kBits);
}

void remove(int fd) {
  const auto at = static_cast<std::size_t>(fd);
  if (fd >= 0 && at < kMost) words[at / kBits].fetch_and(~(std::uint64_t{1} << at % kBits));
}

void let_go_in_child() {
  int nothing = eventfd(0, EFD_CLOEXEC);
  bool is_in_place = false;  // it has a number that shall stay taken
  for (std::size_t word = 0; word < kMost / kBits; ++word) {
    for (std::uint64_t left = words[word].exchange(0); left != 0; left &= left - 1) {
      const int fd = static_cast<int>(word * kBits + static_cast<unsigned>(std::countr_zero(left)));
      if (nothing >= 0) {
        dup3(nothing, fd, O_CLOEXEC);
        continue;
      }
      // No number is free but this one.
      close(fd);
      nothing = eventfd(0, EFD_CLOEXEC);
      is_in_place = nothing == fd;
    }
  }
  if (nothing >= 0 && !is_in_place) close(nothing);
}

}  // namespace urnic::private_descriptors
