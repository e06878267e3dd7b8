// Forks a process with threads at a moment when none of them runs. AddressSanitizer's allocator
// does not support fork: a child would wait forever for a lock that a thread of its parent held.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace urnic::test {

// True if all other threads of this process sleep.
inline bool others_sleep() {
  const std::string self = std::to_string(syscall(SYS_gettid));
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    if (task.path().filename() == self) continue;
    std::string line;
    if (!std::getline(std::ifstream(task.path() / "stat"), line)) continue;  // the thread has ended
    const std::size_t name = line.rfind(')');
    if (name != std::string::npos && line.compare(name, 4, ") S ") != 0) return false;
  }
  return true;
}

// Like fork(). Waits for that moment for at most a second, because a thread may never sleep.
inline pid_t quiet_fork() {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::seconds(1); Clock::now() < end;) {
    if (others_sleep()) break;
    usleep(1000);
  }
  return fork();
}

}  // namespace urnic::test
