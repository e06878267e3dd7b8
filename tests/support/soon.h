// Waits for other threads, other processes or the kernel.
#pragma once

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

namespace urnic::test {

// Events that are immediate on an idle machine take seconds on a busy one. A failing test waits for
// this time.
inline constexpr int kSoonMs = 60'000;
inline constexpr std::chrono::milliseconds kSoon(kSoonMs);

// True if `f` becomes true. The clock decides when to give up, not the number of calls.
template <class F>
bool soon(F&& f, std::chrono::milliseconds within = kSoon) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!f()) {
    if (std::chrono::steady_clock::now() > end) return f();
    usleep(100);
  }
  return true;
}

// True if the thread of this process waits in the kernel.
inline bool is_asleep(long thread) {
  std::string line;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/stat"), line);
  return line.find(") S ") != std::string::npos;
}
inline bool falls_asleep(long thread) {
  return soon([thread] { return is_asleep(thread); });
}

}  // namespace urnic::test
