// Bytes that are a function of a number, and the report of a process whose bytes differ.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace urnic::soak {

inline std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

inline void fill(std::uint8_t* to, std::uint32_t length, std::uint64_t seed) {
  for (std::uint32_t i = 0; i < length; i += 8) {
    const std::uint64_t v = mix(seed + i);
    std::memcpy(to + i, &v, std::min<std::uint32_t>(8, length - i));
  }
}

// The position of the first byte that differs from the pattern of `seed`; `length` if none does.
inline std::uint32_t differs_at(const std::uint8_t* bytes, std::uint32_t length,
                                std::uint64_t seed) {
  for (std::uint32_t i = 0; i < length; i += 8) {
    const std::uint64_t v = mix(seed + i);
    if (std::memcmp(bytes + i, &v, std::min<std::uint32_t>(8, length - i)) != 0) return i;
  }
  return length;
}

// Prints one line that begins with VIOLATION; exit code 3.
[[noreturn]] inline void violation(const std::string& what) {
  std::printf("VIOLATION %s\n", what.c_str());
  std::fflush(stdout);
  std::_Exit(3);
}

// Seconds.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace urnic::soak
