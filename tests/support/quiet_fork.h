// fork() of a process that has threads, when none of them runs: AddressSanitizer's allocator knows
// no forks, so that a child waits for ever for a lock that a thread of its parent held then.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace urnic::test {

// Whether all other threads of this process sleep.
inline bool others_sleep() {
  const std::string self = std::to_string(syscall(SYS_gettid));
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    if (task.path().filename() == self) continue;
    std::string line;
    if (!std::getline(std::ifstream(task.path() / "stat"), line)) continue;  // it has ended
    const std::size_t name = line.rfind(')');
    if (name != std::string::npos && line.compare(name, 4, ") S ") != 0) return false;
  }
  return true;
}

// As fork(). Waits for that, at most a second: a thread that never sleeps is not waited for.
inline pid_t quiet_fork() {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::seconds(1); Clock::now() < end;) {
    if (others_sleep()) break;
    usleep(1000);
  }
  return fork();
}

}  // namespace urnic::test
