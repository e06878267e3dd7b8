// A core that another thread also needs.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace urnic::device {

// The calling thread and a thread that computes without a pause share the caller's core; threads
// that the caller started before may run anywhere.
class CrowdedCore {
 public:
  CrowdedCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
    other_ = std::thread([this] {  // inherits the caller's affinity
      while (!stop_.load(std::memory_order_relaxed)) {
      }
    });
    pthread_getcpuclockid(other_.native_handle(), &clock_);
  }
  ~CrowdedCore() {
    stop_ = true;
    other_.join();
    sched_setaffinity(0, sizeof before_, &before_);
  }
  CrowdedCore(const CrowdedCore&) = delete;
  CrowdedCore& operator=(const CrowdedCore&) = delete;

  // How long the other thread has computed, ns.
  std::int64_t computed() const {
    timespec t{};
    clock_gettime(clock_, &t);
    return t.tv_sec * 1'000'000'000 + t.tv_nsec;
  }

 private:
  cpu_set_t before_{};
  std::atomic<bool> stop_{false};
  std::thread other_;
  clockid_t clock_{};
};

}  // namespace urnic::device
