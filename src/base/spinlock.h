// A lock for critical sections of a few dozen instructions with very rare contention (E-28).
//
// Test and test-and-set: waiters read, and write only when the lock appears free. After kSpins
// pauses a waiter yields its time slice, because on a machine with few cores the owner may not be
// running. Not recursive, not fair. Satisfies Lockable (std::lock_guard, std::unique_lock).
#pragma once

#include <atomic>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace urnic {

// Tells the core that this is a waiting loop.
inline void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Spinlock {
 public:
  Spinlock() = default;
  Spinlock(const Spinlock&) = delete;
  Spinlock& operator=(const Spinlock&) = delete;

  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) wait();
  }
  bool try_lock() {
    return !locked_.load(std::memory_order_relaxed) &&
           !locked_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpins = 64;

  void wait() const {
    for (int i = 0; locked_.load(std::memory_order_relaxed); ++i) {
      if (i < kSpins) {
        cpu_relax();
      } else {
        std::this_thread::yield();
      }
    }
  }

  std::atomic<bool> locked_{false};
};

}  // namespace urnic
