// The right to drive the engine (E-28): a thread takes it for one burst, and after releasing it
// checks for doorbells that rang meanwhile.
//
// A thread that posts and finds the engine taken never waits: it leaves its doorbell, sets the flag
// (rang()), and tries once more. An owner first releases the engine and then checks the flag. All
// four accesses are sequentially consistent, so that at least one of the two sees the other: no
// doorbell is lost.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/spinlock.h"

namespace urnic::device {

class Ownership {
 public:
  Ownership() = default;
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;

  bool try_take() {
    count_here(1);
    const bool taken = taken_.load() == 0 && taken_.exchange(1) == 0;
    if (!taken) count_here(-1);
    return taken;
  }
  // True if this thread owns an engine. A signal handler checks it: the interrupted frame may be
  // the owner, and waiting for it would never end.
  static bool is_owner() { return owned_here != 0; }

  // Waits for the end of another owner's burst.
  void take() {
    if (try_take()) return;
    waiting_.fetch_add(1);
    for (int i = 0; !try_take(); ++i) {
      if (i < kSpins) {
        cpu_relax();
      } else if (i < kSpins + kYields) {
        std::this_thread::yield();
      } else {
        sleep();
      }
    }
    waiting_.fetch_sub(1);
  }
  // Returns true when doorbells rang that are not answered: then the owner takes the engine again,
  // answers them and releases it again. If it cannot take it, the next owner answers them.
  [[nodiscard]] bool give_up() {
    taken_.store(0);
    if (sleeping_.load() != 0) futex(FUTEX_WAKE_PRIVATE, 1);
    count_here(-1);
    return rang_.load();
  }
  // True if a thread waits in take(): an owner that would continue at once lets it go first.
  bool wanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }

  // A doorbell was left for the owner.
  void rang() { rang_.store(true); }
  // The owner calls it before it reads the doorbells.
  void answer() { rang_.store(false); }

 private:
  static constexpr int kSpins = 64, kYields = 8;
  // The owner may have been preempted by this very thread, whose priority is higher
  // (Driver::kNice): it gets the core again only when this thread sleeps.
  void sleep() {
    sleeping_.fetch_add(1);
    futex(FUTEX_WAIT_PRIVATE, 1);  // not if it has been released meanwhile
    sleeping_.fetch_sub(1);
  }
  void futex(int what, std::uint32_t value) {
    syscall(SYS_futex, &taken_, what, value, nullptr, nullptr, 0);
  }
  // Called before taking and after releasing: a signal handler in between sees it as owned.
  static void count_here(int by) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    owned_here += by;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  // In static TLS, which exists from the thread's start: a signal handler may read it.
  static inline constinit thread_local int owned_here [[gnu::tls_model("initial-exec")]] = 0;
  std::atomic<std::uint32_t> taken_{0};
  static_assert(sizeof taken_ == 4);  // as futex(2) needs it
  std::atomic<int> sleeping_{0};
  std::atomic<bool> rang_{false};
  std::atomic<int> waiting_{0};
};

}  // namespace urnic::device
