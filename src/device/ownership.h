// Who drives the engine (E-28): taken for one burst by whoever gets it, given up with a look at the
// doorbells that rang meanwhile.
//
// A thread that finds the engine taken never waits to post: it leaves its doorbell, says so
// (rang()), and tries once more. An owner gives up first and looks then. All four accesses are
// sequentially consistent, so that one of the two sees the other: no doorbell is lost.
#pragma once

#include <atomic>
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
    const bool taken = !taken_.load() && !taken_.exchange(true);
    if (!taken) count_here(-1);
    return taken;
  }
  // Whether this thread owns an engine. A signal handler asks it: the frame that it has interrupted
  // may, and waiting for that would not end.
  static bool is_owner() { return owned_here != 0; }

  // Waits for the end of another owner's burst.
  void take() {
    if (try_take()) return;
    waiting_.fetch_add(1);
    for (int i = 0; !try_take(); ++i) {
      if (i < kSpins) {
        cpu_relax();
      } else {
        std::this_thread::yield();
      }
    }
    waiting_.fetch_sub(1);
  }
  // True when doorbells rang that nobody has answered: the owner takes the engine again, answers
  // them and gives it up again. If that fails, the next owner does.
  [[nodiscard]] bool give_up() {
    taken_.store(false);
    count_here(-1);
    return rang_.load();
  }
  // A thread waits in take(): an owner that would go straight on lets it pass.
  bool wanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }

  // A doorbell has been left for the owner.
  void rang() { rang_.store(true); }
  // By the owner, before it reads the doorbells.
  void answer() { rang_.store(false); }

 private:
  static constexpr int kSpins = 64;
  // Before it is taken and after it is given up: a handler that comes between finds it owned.
  static void count_here(int by) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    owned_here += by;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  // In the block of the thread that exists from its beginning: a signal handler may read it.
  static inline constinit thread_local int owned_here [[gnu::tls_model("initial-exec")]] = 0;
  std::atomic<bool> taken_{false};
  std::atomic<bool> rang_{false};
  std::atomic<int> waiting_{0};
};

}  // namespace urnic::device
