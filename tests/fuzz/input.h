// The fuzzer's input, taken byte by byte. Every sequence is valid. After its end all bytes are
// zero, so that a shorter input is the beginning of the same run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace urnic::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool empty() const { return at_ >= size_; }
  std::size_t left() const { return size_ - at_; }
  std::uint8_t u8() { return at_ < size_ ? data_[at_++] : std::uint8_t{0}; }
  std::uint16_t u16() { return static_cast<std::uint16_t>(u8() << 8 | u8()); }
  std::uint32_t u32() { return std::uint32_t{u16()} << 16 | u16(); }
  // A number in [0, n), n > 0; uses one byte if that is sufficient.
  std::uint32_t below(std::uint32_t n) {
    return (n <= 256 ? u8() : n <= 65536 ? u16() : u32()) % n;
  }
  // True with probability n/256.
  bool often(unsigned n) { return u8() < n; }
  std::vector<std::uint8_t> bytes(std::size_t n) {
    std::vector<std::uint8_t> out(n);
    for (auto& b : out) b = u8();
    return out;
  }
  std::vector<std::uint8_t> rest() { return bytes(left()); }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

// A requirement is violated: both drivers report the input and end.
[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}
inline void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

}  // namespace urnic::fuzz

// Defined by each target: one run. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
