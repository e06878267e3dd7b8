// Waiting for what another thread, another process or the kernel does.
#pragma once

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

namespace urnic::test {

// What comes at once on a quiet machine takes seconds where a test gets little of a core. A test
// that fails waits for so long.
inline constexpr int kSoonMs = 60'000;
inline constexpr std::chrono::milliseconds kSoon(kSoonMs);

// Whether `f` comes true. The clock decides when to give up, not how often it was called.
template <class F>
bool soon(F&& f, std::chrono::milliseconds within = kSoon) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!f()) {
    if (std::chrono::steady_clock::now() > end) return f();
    usleep(100);
  }
  return true;
}

// Whether a thread of this process waits in the kernel.
inline bool is_asleep(long thread) {
  std::string line;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/stat"), line);
  return line.find(") S ") != std::string::npos;
}
inline bool falls_asleep(long thread) {
  return soon([thread] { return is_asleep(thread); });
}

}  // namespace urnic::test
