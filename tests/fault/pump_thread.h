// A pump that runs in its own thread and sleeps when idle.
#pragma once

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "pump_ends.h"

namespace urnic::fault {

struct PumpThread {
  PumpThread(port::Port& a, port::Port& b) : pump(a, b), wake(eventfd(0, EFD_CLOEXEC)) {
    thread = std::thread([this] {
      slept_well = pump.run(stop, wake);
      rusage use{};
      getrusage(RUSAGE_THREAD, &use);
      switches = use.ru_nvcsw;
    });
  }
  ~PumpThread() { end(); }
  void end() {
    if (!thread.joinable()) return;
    stop = true;
    const std::uint64_t one = 1;
    EXPECT_EQ(write(wake, &one, 8), 8);
    thread.join();
    close(wake);
  }
  static std::uint64_t monotonic(void*) {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u +
           static_cast<std::uint64_t>(t.tv_nsec);
  }
  // Waits for `n` frames; only a failing test waits for twenty seconds.
  static bool wait_for(port::Port& p, std::size_t n, std::vector<test::Bytes>& got) {
    const std::uint64_t end = monotonic(nullptr) + 20000000000u;
    while (got.size() < n && monotonic(nullptr) < end) {
      for (test::Bytes& x : PumpTest::receive(p)) got.push_back(std::move(x));
      std::this_thread::yield();
    }
    return got.size() == n;
  }

  Pump pump;
  std::atomic<bool> stop{false};
  int wake;
  bool slept_well = false;
  long switches = 0;
  std::thread thread;
};

}  // namespace urnic::fault
