// Drives an engine in real time (D8): the one place where the engine meets a clock and a thread.
//
// Ownership: whoever holds the lock drives. A polling application drives from its own thread
// (app_poll); a background thread takes over when it stops, spins briefly and then sleeps on the
// port's descriptors and the next timer. An idle engine uses no CPU (E-39).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "base/spinlock.h"
#include "engine/engine.h"

namespace urnic::engine {

Instant monotonic_now();

enum class Progress : std::uint8_t {
  Auto,    // application and background thread, as needed
  Poll,    // the application alone; nothing moves while it does not poll
  Thread,  // the background thread alone
};

struct DriverOptions {
  Progress progress = Progress::Auto;
  Duration spin = Duration::us(50);  // how long the thread looks before it sleeps
};

class Driver {
 public:
  Driver(const DriverOptions&, Engine* engine, port::Port* port, unsigned queue);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Extra descriptor the thread watches; `service` runs without ownership when it is readable.
  void watch(int fd, std::function<void()> service);
  void start();

  // Run `f(now)` as owner; waits for the current burst of another thread.
  template <class F>
  auto own(F&& f) {
    WakeAfter wake{this};
    const std::lock_guard guard(lock_);
    return f(monotonic_now());
  }
  // What CompletionQueue::poll does when it found nothing: one burst, unless another thread drives.
  bool app_poll();
  // The application is about to sleep: the thread must drive from now on.
  void hand_over();
  std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }
  bool has_thread() const { return options_.progress != Progress::Poll; }

 private:
  // After an operation: the sleeping thread must know of an earlier deadline.
  struct WakeAfter {
    Driver* d;
    ~WakeAfter() { d->wake_if_late(); }
  };
  void run();
  void nap();
  void drive();
  bool sleep_until_work();
  void wake();
  void wake_if_late();
  void drain_wake();
  void service_watched();
  int poll_descriptors(int timeout_ms, bool with_port);

  DriverOptions options_;
  Engine* engine_;
  port::Port* port_;
  unsigned queue_;
  Spinlock lock_;
  int wake_fd_ = -1;
  int watch_fd_ = -1;
  std::function<void()> service_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> app_polls_{0};
  std::atomic<bool> handed_over_{false};
  std::atomic<bool> sleeping_{false};
  std::atomic<std::int64_t> sleep_deadline_{0};
  std::atomic<std::int64_t> next_deadline_{0};
  std::atomic<std::uint64_t> sleeps_{0};
  Instant last_service_;
  bool armed_ = false;  // under lock_
};

}  // namespace urnic::engine
