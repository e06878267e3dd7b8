// Waiting for what another thread, another end or the kernel does.
#pragma once

#include <chrono>
#include <thread>

namespace urnic::test {

// What comes at once on a quiet machine takes seconds where a test gets little of a core. Only a
// test that fails waits for so long.
inline constexpr std::chrono::seconds kPatience(60);

// Whether `f` comes true. The clock decides when it is given up, not how often it was asked.
template <class F>
bool eventually(F&& f, std::chrono::microseconds between = std::chrono::milliseconds(1)) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    if (f()) return true;
    if (std::chrono::steady_clock::now() > end) return f();
    std::this_thread::sleep_for(between);
  }
}

}  // namespace urnic::test
