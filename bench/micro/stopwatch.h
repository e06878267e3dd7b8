// Timing and statistics for the micro benchmarks. A result is always the ratio of two loops
// measured alternately in one run, so that clock changes and other load affect both.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace urnic::bench {

// CPU time of this thread, which excludes the time of other processes on a shared machine.
inline double seconds_now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

inline double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  const std::size_t mid = v.size() / 2;
  return v.size() % 2 != 0 ? v[mid] : (v[mid - 1] + v[mid]) / 2;
}

// Makes the optimizer assume that `value` is used.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

// Bytes per second of `pass`, which processes `bytes` per call, measured for about `seconds`.
template <class Pass>
double rate(Pass&& pass, std::size_t bytes, double seconds) {
  std::uint64_t passes = 0;
  const double start = seconds_now();
  double now = start;
  do {
    for (int i = 0; i < 16; ++i) pass();
    passes += 16;
    now = seconds_now();
  } while (now - start < seconds);
  return static_cast<double>(passes) * static_cast<double>(bytes) / (now - start);
}

}  // namespace urnic::bench
