// The resident memory of this process.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace urnic::bench {

inline std::uint64_t resident() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0, pages = 0;
  if (!(statm >> all >> pages)) {
    std::fprintf(stderr, "bench: /proc/self/statm cannot be read\n");
    std::exit(1);
  }
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace urnic::bench
